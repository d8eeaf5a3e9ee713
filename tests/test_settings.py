"""Directives: their values, how they are read and shown, and what is called after a change."""

from collections.abc import Callable

import pytest

from penstock.config.cluster_directives import CLUSTER
from penstock.config.directive_types import BadValue
from penstock.config.directives import USED
from penstock.config.settings import DIRECTIVES, Settings
from penstock.errors import ReplyError
from tests.support.engines import settings_with
from tests.support.source_trees import FILES

FAILED = "ERR CONFIG SET failed (possibly related to argument '{}') - {}"

SHOWN = [
    ("maxmemory", "1GB", "1073741824"),
    ("maxmemory", "1g", "1000000000"),
    ("maxmemory", "", "0"),
    ("maxmemory-clients", "0%", "0%"),
    ("maxmemory-clients", "0kb", "0"),
    ("appendfsync", "ALWAYS", "always"),
    ("protected-mode", "No", "no"),
    ("hz", "501", "500"),
    ("hz", "0", "1"),
    ("notify-keyspace-events", "KEA", "AKE"),
    ("notify-keyspace-events", "tEx", "xtE"),
    ("notify-keyspace-events", "KEg$lshzxetdamnoc", "AKEm"),
    ("notify-keyspace-events", "ocnm", "nocm"),
    ("notify-keyspace-events", "VAIhTS", "ASTIV"),
    ("notify-keyspace-events", "hVKS", "hKSV"),
    ("save", "60 1 30 2", "60 1 30 2"),
    ("client-output-buffer-limit", "", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
    (
        "client-output-buffer-limit",
        "normal 1mb 1kb 10 replica 4 5 6",
        "normal 1048576 1024 10 slave 4 5 6 pubsub 33554432 8388608 60",
    ),
    ("oom-score-adj-values", "30 20 10", "30 20 10"),
    ("latency-tracking-info-percentiles", "50.50 99.99 100.0", "50.5 99.99 100"),
    ("shutdown-on-sigterm", "now SAVE", "save now"),
]
REFUSED = [
    ("hz", "abc", "argument couldn't be parsed into an integer"),
    ("hz", "010", "argument couldn't be parsed into an integer"),
    ("hz", "9" * 5000, "argument couldn't be parsed into an integer"),
    ("port", "65536", "argument must be between 0 and 65535 inclusive"),
    ("stream-idmp-duration", "0", "argument must be between 1 and 86400 inclusive"),
    ("stream-node-max-bytes", "-1", "argument must be a memory value"),
    ("stream-node-max-bytes", "1t", "argument must be a memory value"),
    ("proto-max-bulk-len", "10", "argument must be between 1048576 and 9223372036854775807 inclusive"),
    ("maxmemory-clients", "101%", "percentage argument must be less or equal to 100"),
    ("maxmemory-clients", "-1", "argument must be a memory or percent value"),
    ("appendonly", "maybe", "argument must be 'yes' or 'no'"),
    ("appendfsync", "x", "argument(s) must be one of the following: everysec, always, no"),
    ("save", "60 1  300 100", "Invalid save parameters"),
    ("save", "0 1", "Invalid save parameters"),
    ("notify-keyspace-events", "foo", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
    ("client-output-buffer-limit", "normal 0 0", "Wrong number of arguments in buffer limit configuration."),
    ("client-output-buffer-limit", "x 0 0 0", "Invalid client class specified in buffer limit configuration."),
    (
        "client-output-buffer-limit",
        "normal 1 1 -1",
        "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
    ),
    ("oom-score-adj-values", "1 2", "wrong number of arguments"),
    ("oom-score-adj-values", "1 2 5000", "Invalid oom-score-adj-values, elements must be between -2000 and 2000."),
    (
        "shutdown-on-sigint",
        "save nosave",
        "shutdown options SAVE and NOSAVE can't be used simultaneously",
    ),
    ("databases", "5", "can't set immutable config"),
    ("dir", ".", "can't set protected config"),
]


@pytest.fixture
def settings() -> Settings:
    return Settings()


def refusal(change: Callable[[], None]) -> str:
    with pytest.raises(ReplyError) as caught:
        change()
    return caught.value.text.decode()


@pytest.mark.parametrize(("name", "value", "shown"), SHOWN)
def test_a_value_is_shown_in_its_canonical_form(settings: Settings, name: str, value: str, shown: str) -> None:
    settings.set_pairs([(name, value)])

    assert settings.canonical(name) == shown


@pytest.mark.parametrize(("name", "value", "why"), REFUSED)
def test_a_bad_value_is_refused_in_the_words_of_redis(settings: Settings, name: str, value: str, why: str) -> None:
    assert refusal(lambda: settings.set_pairs([(name, value)])) == FAILED.format(name, why)


def test_what_is_shown_can_be_set(settings: Settings) -> None:
    settings.force("compat-version", "valkey-9.1")
    before = {name: settings.text(name) for name in DIRECTIVES}

    settings.set_pairs([(name, settings.canonical(name)) for name, row in DIRECTIVES.items() if settable(name)])

    assert {name: settings.text(name) for name in DIRECTIVES} == before


@pytest.mark.parametrize("name", ["commandlog-reply-larger-than", "commandlog-slow-execution-max-len"])
def test_a_name_of_valkey_s_is_unknown_to_clients_of_a_redis(settings: Settings, name: str) -> None:
    assert refusal(lambda: settings.set_pairs([(name, "1")])).startswith("ERR Unknown option")
    assert name not in settings.names()


def settable(name: str) -> bool:
    return not DIRECTIVES[name].immutable and not DIRECTIVES[name].protected


def test_every_directive_has_a_sentence() -> None:
    assert [row.name for row in DIRECTIVES.values() if not row.about.endswith(".")] == []


NAMES_OF_PARTS = {  # f"enable-{part}-command"
    "console-bind", "enable-debug-command", "enable-module-command", "metrics-bind", "shutdown-on-sigint",
    "shutdown-on-sigterm",
}  # fmt: skip


def test_each_directive_is_read_by_some_module() -> None:
    source = "".join(path.read_text() for path in FILES if path.name not in ("directives.py", "cluster_directives.py"))

    assert {row.name for row in (*USED, *CLUSTER) if f'"{row.name}"' not in source} == NAMES_OF_PARTS


def test_names_are_known_in_any_case(settings: Settings) -> None:
    settings.set_pairs([("TimeOut", "7")])

    assert settings.number("timeout") == 7


def test_an_alias_has_the_same_value(settings: Settings) -> None:
    settings.set_pairs([("lua-time-limit", "9")])

    assert settings.canonical("busy-reply-threshold") == settings.canonical("lua-time-limit") == "9"


def test_an_unknown_name_is_refused_before_any_value_is_looked_at(settings: Settings) -> None:
    unknown = "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"

    assert refusal(lambda: settings.set_pairs([("port", "abc"), ("foo", "1")])) == unknown


def test_a_name_given_twice_is_refused(settings: Settings) -> None:
    assert refusal(lambda: settings.set_pairs([("hz", "5"), ("HZ", "6")])) == FAILED.format("HZ", "duplicate parameter")


def test_one_bad_value_changes_nothing(settings: Settings) -> None:
    refusal(lambda: settings.set_pairs([("timeout", "5"), ("hz", "abc")]))

    assert settings.number("timeout") == 0


def test_a_protected_directive_can_be_set_where_that_is_allowed(settings: Settings) -> None:
    settings.set_pairs([("dir", "/")], protected_too=True)

    assert settings.text("dir") == "/"


def test_a_watcher_hears_of_a_change_and_of_nothing_else(settings: Settings) -> None:
    heard: list[int] = []
    settings.watch("timeout", lambda: heard.append(settings.number("timeout")))

    settings.set_pairs([("timeout", "0")])
    settings.set_pairs([("timeout", "7"), ("hz", "20")])

    assert heard == [7]


@pytest.mark.parametrize(
    ("pairs", "moves", "told"),
    [
        (("timeout 7", "tls-port 7001", "port 7000"), [7001, 0], ["0"]),
        (("port 7000", "timeout 7", "tls-port 7001"), [], []),
    ],
)
def test_a_watcher_that_refuses_puts_everything_back(
    settings: Settings, pairs: tuple[str, ...], moves: list[int], told: list[str]
) -> None:
    """One that may refuse, and did not, is called again; one that may not has heard of nothing."""
    heard: list[str] = []
    moved: list[int] = []

    def taken() -> None:
        raise BadValue("Unable to listen on this port. Check server logs.")

    settings.watch("timeout", lambda: heard.append(settings.text("timeout")))
    settings.watch("tls-port", lambda: heard.append(settings.text("tls-port")))
    settings.watch("tls-port", lambda: moved.append(settings.number("tls-port")), may_refuse=True)
    settings.watch("port", taken, may_refuse=True)
    wanted = [(name, value) for name, _, value in [pair.partition(" ") for pair in pairs]]

    assert refusal(lambda: settings.set_pairs(wanted)) == FAILED.format(
        "port", "Unable to listen on this port. Check server logs."
    )
    assert (settings.number("port"), settings.number("timeout"), settings.number("tls-port")) == (6379, 0, 0)
    assert (moved, heard) == (moves, told)


def test_buffer_limits_are_numbers_by_class(settings: Settings) -> None:
    assert settings.buffer_limits()["pubsub"] == (33554432, 8388608, 60)


def test_permission_bits_are_written_in_octal() -> None:
    settings = settings_with(unixsocketperm="770")

    assert (settings.number("unixsocketperm"), settings.canonical("unixsocketperm")) == (0o770, "770")


def test_event_classes_are_kept_with_all_their_letters(settings: Settings) -> None:
    settings.set_pairs([("notify-keyspace-events", "KAn")])

    assert settings.text("notify-keyspace-events") == "g$lshzxetdanK"
