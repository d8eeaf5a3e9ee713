"""ACL: users, their rules, and where they come from. Dialogues beside Redis are in transcripts/acl_*.txt."""

import re
import shutil
from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.config import config_file
from penstock.config.directive_types import BadValue
from penstock.config.settings import Settings
from penstock.engine.access.users import MOST_KNOWN, MOST_KNOWN_BYTES, MOST_KNOWN_WORDS
from penstock.errors import UsageError
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.replies_beside_redis import replies_of_both
from tests.support.word_batches import batches_of

HASH = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of abc
AGAIN = "ACL SETUSER default reset on nopass +@all ~* &*"

ALIKE = {
    "who": ["ACL", "ACL FOO", "ACL WHOAMI", "ACL USERS", "ACL LIST", "ACL GETUSER default", "ACL GETUSER nobody"],
    "categories": ["ACL CAT", "ACL CAT nope", "ACL CAT a b"],
    "passwords made up": ["ACL GENPASS 0", "ACL GENPASS x", "ACL GENPASS 5000", "ACL GENPASS 1 2"],
    "dry runs": [
        "ACL DRYRUN default get a", "ACL DRYRUN nobody get a", "ACL DRYRUN default nope a", "ACL DRYRUN default get",
        "ACL DRYRUN default xgroup create a",
    ],
    "a long name": ["ACL CAT " + "x" * 130],
    "log": ["ACL LOG RESET", "ACL LOG 5", "ACL LOG x", "ACL LOG -1", "ACL LOG 1 2"],
    "files": ["ACL LOAD", "ACL SAVE", "ACL DELUSER default", "ACL DELUSER nobody"],
    "bad rules": [
        "ACL SETUSER default foo", "ACL SETUSER default '#abc'", "ACL SETUSER default '!abc'",
        "ACL SETUSER default '<zzz'", "ACL SETUSER default '~a'", "ACL SETUSER default '%R~a'",
        "ACL SETUSER default '&a'",
    ],
    "passwords": [
        "ACL SETUSER default '>abc'", "ACL GETUSER default", "ACL LIST", "CONFIG GET requirepass",
        "ACL SETUSER default '>def' '>def'", "ACL LIST", "AUTH x", "AUTH abc", "AUTH default def",
        "ACL SETUSER default '<abc' foo", "ACL LIST", "ACL SETUSER default '<abc'", "ACL LIST",
        f"ACL SETUSER default '#{HASH}'", "ACL LIST", f"ACL SETUSER default '!{HASH}'", "ACL LIST",
        "ACL SETUSER default resetpass", "ACL LIST", "AUTH x", AGAIN, "ACL LIST", "AUTH x",
    ],
    "sorted by keys that another selector allows": [
        "RPUSH a 1 2", "ACL SETUSER srt on nopass '(+sort ~a ~d)' '(+sort %R~*)'", "AUTH srt x", "SORT a BY w_*",
        "SORT a GET w_*", "SORT a STORE d", "SORT a BY w_* STORE d", "SORT a GET w_* STORE d", "SORT a BY w_* STORE e",
        "SORT e BY nosort GET #", "AUTH default x", "ACL SETUSER srt reset on nopass '~*' '+sort|a'", "AUTH srt x",
        "SORT a BY w_*", "SORT a GET #", "SORT e GET #", "AUTH default x", "ACL DELUSER srt", "DEL a d e",
    ],
    "off": ["ACL SETUSER default OFF", "ACL LIST", "PING", "AUTH default x", AGAIN],
    "allowed already": ["ACL SETUSER default +@all '~*' allkeys '&*' allchannels allcommands sanitize-payload", AGAIN],
}  # fmt: skip


@pytest.mark.parametrize("resp", [2, 3])
@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_acl_answers_what_redis_answers(reference_port: int, lines: list[str], resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, lines, resp)

    assert ours == theirs


def test_a_user_turned_off_lets_no_new_connection_in(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER default off")

    assert str(dialogue.another()("PING")) == "NOAUTH Authentication required."


def test_requirepass_takes_the_place_of_what_setuser_did(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER default >abc", "CONFIG SET requirepass def")

    assert dialogue.another()("AUTH def") == b"OK"
    assert str(dialogue.another()("AUTH abc")).startswith("WRONGPASS")


def test_a_category_lists_its_commands(dialogue: Dialogue) -> None:
    listed = dialogue("ACL CAT STREAM")

    assert isinstance(listed, list)
    assert {b"xadd", b"xgroup|create"} <= set(listed)
    assert b"xgroup" not in listed


def test_containers_are_slow_and_in_no_other_category(dialogue: Dialogue) -> None:
    listed = {category: set(dialogue(f"ACL CAT {category.decode()}")) for category in dialogue("ACL CAT")}
    containers = {
        b"acl", b"client", b"cluster", b"config", b"function", b"hotkeys", b"latency", b"memory", b"object", b"pubsub",
        b"script", b"slowlog", b"xgroup", b"xinfo",
    }  # fmt: skip

    assert containers <= listed.pop(b"slow")
    assert containers.isdisjoint(set().union(*listed.values()))


def test_made_up_passwords_are_long_and_differ(dialogue: Dialogue) -> None:
    first, second = dialogue.raw("ACL GENPASS"), dialogue.raw("ACL GENPASS")

    assert re.fullmatch(rb"\$64\r\n[0-9a-f]{64}\r\n", first)
    assert first != second
    assert len(dialogue.raw("ACL GENPASS 5")) == len(b"$2\r\nff\r\n")


def test_refused_logins_are_logged_and_repetitions_counted(dialogue: Dialogue, clock: ManualClock) -> None:
    dialogue("AUTH joe a", "AUTH joe b", "hello 3 AUTH joe c", "MULTI", "AUTH joe d", "EXEC", "HELLO 3")
    clock.advance(1500)

    log = dialogue("ACL LOG")

    assert isinstance(log, list)
    assert [(line[b"context"], line[b"object"], line[b"count"]) for line in log] == [
        (b"multi", b"AUTH", 1), (b"toplevel", b"hello", 1), (b"toplevel", b"AUTH", 2),
    ]  # fmt: skip
    assert [line[b"entry-id"] for line in log] == [2, 1, 0]
    assert log[0][b"age-seconds"] == 1.5
    assert log[0][b"username"] == b"joe"


def with_users(*lines: str, **directives: str) -> Settings:
    """Settings as a configuration with `user` lines gives them."""
    settings = settings_with(**directives)
    for line in lines:
        settings.read_line(["user", *line.split()], set())
    return settings


def test_the_configuration_may_have_a_line_for_the_user() -> None:
    dialogue = Dialogue(make_engine(settings=with_users("default on >abc ~* &* +@all")))

    assert str(dialogue("PING")) == "NOAUTH Authentication required."
    assert dialogue("AUTH abc", "PING") == b"PONG"


def test_a_users_line_says_everything_of_the_user() -> None:
    dialogue = Dialogue(make_engine(settings=with_users("default on nopass +acl ~*", requirepass="sec")))

    assert dialogue("ACL LIST") == [b"user default on nopass sanitize-payload ~* resetchannels -@all +acl"]


def test_the_configuration_may_have_other_users() -> None:
    dialogue = Dialogue(make_engine(settings=with_users("joe on >abc +get (+set ~b)", "amy", requirepass="sec")))

    assert dialogue("AUTH sec", "ACL USERS") == [b"amy", b"default", b"joe"]
    assert dialogue("AUTH joe abc") == b"OK"
    assert str(dialogue("SET a b")) == "NOPERM No permissions to access a key"
    assert dialogue("SET b a") == b"OK"


def test_new_users_may_listen_to_all_channels_if_the_configuration_says_so() -> None:
    dialogue = Dialogue(make_engine(settings=with_users("joe", acl_pubsub_default="allchannels")))

    assert dialogue("ACL GETUSER joe")[9] == b"&*"
    dialogue("CONFIG SET acl-pubsub-default resetchannels", "ACL SETUSER amy")
    assert dialogue("ACL GETUSER amy")[9] == b""


BAD_USERS = {
    "rule": (["joe on +nosuch"], "Error loading ACL rule '\\+nosuch' for the user named 'joe': Unknown command"),
    "selector": (["joe (+get"], "Error in user declaration 'joe': Wrong format"),
    "name": (["a\0b on"], "Spaces not allowed in ACL usernames"),
}


@pytest.mark.parametrize(("lines", "complaint"), BAD_USERS.values(), ids=BAD_USERS)
def test_a_wrong_line_of_a_user_stops_the_start(lines: list[str], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make_engine(settings=with_users(*lines))


def test_a_user_is_defined_once() -> None:
    with pytest.raises(BadValue) as refusal:
        with_users("joe on", "joe off")
    assert refusal.value.text.startswith("Error in user declaration 'joe': Duplicate user found.")


def test_a_command_keeps_its_name_in_rules_when_it_is_renamed() -> None:
    settings = Settings()
    settings.renamed += [("GET", "FETCH"), ("DEL", "")]
    dialogue = Dialogue(make_engine(settings=settings))

    assert dialogue("ACL SETUSER joe on nopass ~* +get +del", "AUTH joe x", "FETCH a") is None
    assert str(dialogue("AUTH default x", "ACL SETUSER joe +fetch")).endswith("Unknown command or category name in ACL")
    assert dialogue("ACL SETUSER joe -get", "AUTH joe x", "FETCH a").args == (
        "NOPERM User joe has no permissions to run the 'get' command",
    )


@pytest.mark.parametrize("change", ["ACL SETUSER u resetkeys", "ACL SETUSER u -xreadgroup", "ACL DELUSER u"])
def test_no_consumer_is_made_for_a_blocked_reader_that_may_not_read_any_more(dialogue: Dialogue, change: str) -> None:
    dialogue("XGROUP CREATE s g $ MKSTREAM", "ACL SETUSER u on nopass +@all %R~s")
    first, other = dialogue.another(), dialogue.another()
    other("AUTH u x")
    for client, name in ((first, "a"), (other, "b")):
        client(f"XREADGROUP GROUP g {name} BLOCK 0 STREAMS s >")

    dialogue("MULTI", change, "DEL s", "XGROUP CREATE s g $ MKSTREAM", "EXEC")

    assert [consumer[1] for consumer in dialogue("XINFO CONSUMERS s g")] == [b"a"]


def test_a_first_argument_with_spaces_is_refused(dialogue: Dialogue) -> None:
    """Redis 8.6.3 takes it, and stops when it is asked to show the user."""
    assert str(dialogue("ACL SETUSER joe '+select|a b'")).endswith("Syntax error")


def test_a_target_without_sources_is_a_key(dialogue: Dialogue) -> None:
    """Redis 8.6.3 finds no key in it, so every user may make any key."""
    dialogue("ACL SETUSER joe on nopass +@all", "AUTH joe x")

    assert str(dialogue("PFMERGE k")) == "NOPERM No permissions to access a key"


def test_a_stream_is_guarded_also_behind_a_group_named_like_an_option(dialogue: Dialogue) -> None:
    """Redis 8.6.3 takes the group's name for the option, and asks for the rights to another key."""
    dialogue("XADD secret 1-0 f v", "XGROUP CREATE secret STREAMS 0")
    dialogue("ACL SETUSER joe on nopass +@all ~c ~STREAMS", "AUTH joe x")

    refused = dialogue("XREADGROUP COUNT 1 GROUP STREAMS c STREAMS secret >")

    assert str(refused) == "NOPERM No permissions to access a key"


BEHIND_OPTIONS = {
    "a second target": ("GEORADIUS readg 13 38 1 km STORE write1 STORE other", "other"),
    "a second target around a member": ("GEORADIUSBYMEMBER readg m 1 km STOREDIST write1 STOREDIST other", "other"),
    "behind a target named like an option": ("SORT read1 STORE get STORE other", "other"),
    "behind a field named like an option": ("PENSTOCK.POLICY write1 AT forward forward other", "other"),
    "behind a value named like an option": (
        "PENSTOCK.POLICY write1 GROUP g ACKWAIT 5 KEY deadletter deadletter other",
        "other",
    ),
}


@pytest.mark.parametrize(("line", "target"), BEHIND_OPTIONS.values(), ids=BEHIND_OPTIONS)
def test_a_target_is_guarded_wherever_it_stands_among_options(dialogue: Dialogue, line: str, target: str) -> None:
    """Redis 8.6.3 looks for the first word that is spelled like the option."""
    dialogue("GEOADD readg 13 38 m", "RPUSH read1 1", "XADD write1 1-0 f v", "XGROUP CREATE write1 g 0")
    dialogue("ACL SETUSER joe on nopass +@all %R~read* ~write* %W~get %W~forward %W~deadletter", "AUTH joe x")

    assert str(dialogue(line)) == "NOPERM No permissions to access a key"
    assert str(dialogue(f"EXISTS {target}")).startswith("NOPERM")


PERMITTED = {
    "a group": "PENSTOCK.POLICY rw1 GROUP FORWARD ACKWAIT 5",
    "a field": "PENSTOCK.POLICY rw1 AT deadletter FORWARD rw2",
    "no target": "PENSTOCK.POLICY rw1 FORWARD NONE",
    "a value that is compared": "SET w1 v IFEQ get",
    "a target": "SORT rw3 STORE w1 STORE rw2",
}


@pytest.mark.parametrize("line", PERMITTED.values(), ids=PERMITTED)
def test_a_word_spelled_like_an_option_needs_no_right(dialogue: Dialogue, line: str) -> None:
    dialogue("XADD rw1 1-0 f v", "XGROUP CREATE rw1 FORWARD 0", "ACL SETUSER joe on nopass +@all ~rw* %W~w*")
    dialogue("AUTH joe x")

    assert "NOPERM" not in str(dialogue(line))


def test_a_stream_is_forwarded_only_by_a_user_with_the_right_to_read_it(dialogue: Dialogue) -> None:
    dialogue("XADD w1 1-0 f v", "XGROUP CREATE w1 g 0", "ACL SETUSER joe on nopass +@all %W~w* ~rw*", "AUTH joe x")

    assert dialogue("PENSTOCK.POLICY w1 MAXLEN 5") == b"OK"
    assert str(dialogue("PENSTOCK.POLICY w1 FORWARD rw1")) == "NOPERM No permissions to access a key"
    assert str(dialogue("PENSTOCK.POLICY w1 GROUP g MAXDELIVER 1 DEADLETTER rw1")).startswith("NOPERM")


def test_what_a_user_was_allowed_once_is_asked_again_when_the_rules_change(dialogue: Dialogue) -> None:
    """A user remembers allowed requests with keys that must be looked for."""
    read = "XREADGROUP GROUP g joe STREAMS orders:1 >"
    joe = dialogue.another()
    dialogue("XADD orders:1 1-0 f v", "XGROUP CREATE orders:1 g 0", "ACL SETUSER joe on nopass +@all ~orders:*")
    joe("AUTH joe x")

    assert [joe(read), joe(read)] == [[[b"orders:1", [[b"1-0", [b"f", b"v"]]]]], None]
    dialogue("ACL SETUSER joe resetkeys ~others:*")
    assert str(joe(read)) == "NOPERM No permissions to access a key"
    dialogue("ACL SETUSER joe ~orders:* -xreadgroup")
    assert str(joe(read)) == "NOPERM User joe has no permissions to run the 'xreadgroup' command"
    dialogue("ACL SETUSER joe +xreadgroup")
    assert joe(read) is None


def test_a_user_remembers_so_many_requests_and_no_long_ones(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER joe on nopass +@all ~k*", "AUTH joe x")

    for number in range(3 * MOST_KNOWN):
        assert str(dialogue(f"XREAD STREAMS k{number} 0")) == "None"
        assert str(dialogue(f"XREAD STREAMS x{number} 0")) == "NOPERM No permissions to access a key"
    dialogue(
        f"XREAD STREAMS k{'x' * MOST_KNOWN_BYTES} 0",
        f"XREAD STREAMS {'k ' * MOST_KNOWN_WORDS} {'0 ' * MOST_KNOWN_WORDS}",
    )

    known = dialogue.session.user._known
    assert 0 < len(known) <= MOST_KNOWN
    assert max(sum(map(len, words)) for words in known) < 40


@pytest.mark.parametrize("forbidden", [0, 3, 7])
@pytest.mark.parametrize(
    ("request_of", "answer"),
    [
        ("SET {} v", b"+OK\r\n"),
        ("XREAD STREAMS {} 0", b"*-1\r\n"),
        ("XADD {} 5-5 f v", b"$3\r\n5-5\r\n"),
        ("XACK {} g 5-5", b":0\r\n"),
    ],
)
def test_in_a_pipeline_each_request_is_judged_by_its_own_key(
    dialogue: Dialogue, request_of: str, answer: bytes, forbidden: int
) -> None:
    dialogue("ACL SETUSER joe on nopass +@all ~mine*", "AUTH joe x")
    keys = ["yours" if number == forbidden else f"mine{number}" for number in range(8)]
    requests = [request_of.format(key).encode().split() for key in keys]
    replies: list[bytes] = []

    dialogue.engine.handle_batches(
        dialogue.session, batches_of(requests, dialogue.engine.batch_shapes), 1 << 20, replies, []
    )

    expected = [answer] * 8
    expected[forbidden] = b"-NOPERM No permissions to access a key\r\n"
    assert replies == expected


# -- what a change means to the clients that are there -----------------------------------------------------------------


def test_a_deleted_user_is_shown_out(dialogue: Dialogue) -> None:
    joe, amy = dialogue.another(), dialogue.another()
    dialogue("ACL SETUSER joe on nopass +@all ~* &*", "ACL SETUSER amy on nopass +@all")
    joe("AUTH joe x", "BLPOP nothing 0")
    amy("AUTH amy x")

    assert dialogue("ACL DELUSER joe") == 1
    assert dialogue.engine.clients.to_close == [joe.session]
    assert not joe.session.authenticated


def test_a_user_that_deletes_itself_gets_the_reply_and_nothing_more(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER joe on nopass +@all ~* &*", "AUTH joe x")

    assert dialogue("ACL DELUSER joe") == 1
    assert dialogue.session.closing
    assert dialogue.engine.clients.to_close == []


LISTENERS = {
    "a channel that is not allowed any more": ("SUBSCRIBE d", "resetchannels &c:*", True),
    "a channel that still is": ("SUBSCRIBE c:1", "resetchannels &c:?", False),
    "a channel that a selector allows": ("SUBSCRIBE d", "resetchannels (&d)", False),
    "a pattern that only fits": ("PSUBSCRIBE c:*", "resetchannels &c*", True),
    "the same pattern": ("PSUBSCRIBE c:*", "resetchannels &c:*", False),
    "a shard's channel": ("SSUBSCRIBE d", "resetchannels", True),
    "all channels": ("PSUBSCRIBE c:*", "allchannels", False),
    "a command that is gone": ("SUBSCRIBE d", "-subscribe", False),
    "a user that is off": ("SUBSCRIBE d", "off", False),
    "all requests": ("MONITOR", "-monitor", True),
    "all requests still": ("MONITOR", "nocommands +monitor", False),
    "all changes": ("PSYNC ? -1", "-@dangerous", True),
    "a snapshot and all changes": ("SYNC", "-@all", True),
    "all changes by one of two commands": ("PSYNC ? -1", "-psync", False),
}


@pytest.mark.parametrize(("subscription", "change", "is_closed"), LISTENERS.values(), ids=LISTENERS)
def test_a_listener_that_may_not_listen_any_more_is_closed(
    dialogue: Dialogue, subscription: str, change: str, is_closed: bool
) -> None:
    joe = dialogue.another()
    dialogue("ACL SETUSER joe on nopass +@all ~* &c:* &d")
    joe("AUTH joe x")
    joe.raw(subscription)

    dialogue(f"ACL SETUSER joe {change}")

    assert (dialogue.engine.clients.to_close == [joe.session]) is is_closed


WAITING = {
    "a list": ("BLPOP k 0", "RPUSH k x", [b"k", b"x"]),
    "a stream": ("XREAD BLOCK 0 STREAMS k $", "XADD k 1-0 f v", {b"k": [[b"1-0", [b"f", b"v"]]]}),
    "a group": ("XREADGROUP GROUP g c BLOCK 0 STREAMS k >", "XADD k 1-0 f v", {b"k": [[b"1-0", [b"f", b"v"]]]}),
}


@pytest.mark.parametrize(("request_line", "push", "served"), WAITING.values(), ids=WAITING)
def test_what_a_waiting_client_may_not_have_any_more_goes_to_the_next(
    dialogue: Dialogue, request_line: str, push: str, served: object
) -> None:
    joe, amy = dialogue.another(), dialogue.another()
    dialogue("ACL SETUSER joe on nopass +@all ~*")
    if request_line.startswith("X"):
        dialogue("XGROUP CREATE k g $ MKSTREAM")
    joe("AUTH joe x", request_line)
    amy("HELLO 3", request_line)
    dialogue("ACL SETUSER joe resetkeys", push)

    assert [str(refusal) for refusal in joe.arrived()] == ["NOPERM No permissions to access a key"]
    assert amy.arrived() == [served]
    assert joe.session.blocked is None


def test_clients_of_the_default_user_stay_when_it_is_restricted(dialogue: Dialogue) -> None:
    other = dialogue.another()
    dialogue("ACL SETUSER default -get")

    assert str(other("GET a")) == "NOPERM User default has no permissions to run the 'get' command"
    assert other("SET a b", "RESET", "SET a c") == b"OK"


def test_in_a_transaction_a_new_login_counts_for_what_follows(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER joe on nopass +get ~*", "MULTI", "SET a 1", "AUTH joe x", "SET a 2", "GET a")

    replies = dialogue("EXEC")

    assert (replies[0], replies[1], replies[3]) == (b"OK", b"OK", b"1")
    assert str(replies[2]).startswith("NOPERM ACLs rules changed between")


def test_info_counts_what_was_refused(dialogue: Dialogue) -> None:
    dialogue("ACL SETUSER joe on nopass +get +publish ~a", "AUTH joe x", "GET b", "SET a b", "PUBLISH c x", "GET b")
    dialogue("AUTH nobody x", "AUTH default x")

    assert {line for line in dialogue("INFO stats").decode().split("\r\n") if line.startswith("acl_")} == {
        "acl_access_denied_auth:1", "acl_access_denied_cmd:1", "acl_access_denied_key:2",
        "acl_access_denied_channel:1", "acl_access_denied_tls_cert:0",
    }  # fmt: skip


def test_passwords_are_shown_nowhere(dialogue: Dialogue) -> None:
    watcher = dialogue.another()
    watcher("MONITOR")
    dialogue("CONFIG SET slowlog-log-slower-than 0")
    dialogue("ACL SETUSER joe on >sesame (+get ~a)", "AUTH joe sesame", "AUTH default x", "HELLO 2 AUTH joe sesame")
    dialogue("AUTH default x", "ACL SETUSER joe >sesame foo", "AUTH joe sesam")

    seen = [dialogue("SLOWLOG GET -1"), dialogue("ACL LOG"), dialogue("ACL LIST"), watcher.arrived()]

    assert "sesam" not in repr(seen)


def test_the_log_keeps_as_many_refusals_as_it_may(dialogue: Dialogue) -> None:
    dialogue("CONFIG SET acllog-max-len 2", *[f"AUTH user{number} x" for number in range(5)])

    assert [entry[b"username"] for entry in as_maps(dialogue("ACL LOG"))] == [b"user4", b"user3"]
    assert dialogue("CONFIG SET acllog-max-len 0", "AUTH amy x", "ACL LOG") == []


def as_maps(entries: list[list[object]]) -> list[dict[object, object]]:
    return [dict(zip(entry[::2], entry[1::2], strict=True)) for entry in entries]


# -- CONFIG REWRITE and the ACL file ----------------------------------------------------------------------------------


def test_config_rewrite_writes_the_users(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 7000\nuser joe on +get\n# the end\nuser amy on\n")
    dialogue = Dialogue(make_engine(settings=config_file.start([str(file)])))

    dialogue("ACL SETUSER joe +set", "ACL DELUSER amy", "CONFIG REWRITE")

    assert file.read_text() == (
        "port 7000\n"
        "user default on nopass sanitize-payload ~* &* +@all\n"
        "user joe on sanitize-payload resetchannels -@all +get +set\n"
        "# the end\n"
    )
    again = Dialogue(make_engine(settings=config_file.start([str(file)])))
    assert again("ACL LIST") == dialogue("ACL LIST")


def test_config_rewrite_writes_no_user_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    file = tmp_path / "redis.conf"
    file.write_text("port 7000\n")
    dialogue = Dialogue(make_engine(settings=config_file.start([str(file)])))

    dialogue("CONFIG SET requirepass sec", "CONFIG REWRITE")

    assert "user" not in file.read_text()
    assert 'requirepass "sec"' in file.read_text()


def with_file(tmp_path: Path, text: str) -> Dialogue:
    (tmp_path / "users.acl").write_text(text)
    return Dialogue(make_engine(settings=settings_with(dir=str(tmp_path), aclfile="users.acl")))


def test_the_acl_file_has_the_users(tmp_path: Path) -> None:
    dialogue = with_file(tmp_path, "\nuser joe on >p ~a +get  +set\n  user amy on (+get ~b) (+set ~c)\r\n")

    assert dialogue("ACL LIST") == [
        b"user amy on sanitize-payload resetchannels -@all (~b resetchannels -@all +get) (~c resetchannels -@all +set)",
        b"user default on nopass sanitize-payload ~* &* +@all",
        b"user joe on sanitize-payload #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~a"
        b" resetchannels -@all +get +set",
    ]


def test_saved_users_are_the_ones_that_are_loaded(tmp_path: Path) -> None:
    dialogue = with_file(tmp_path, "")
    dialogue("ACL SETUSER joe on >p (+get ~a) &x", "ACL SAVE", "ACL SETUSER joe -@all off", "ACL SETUSER amy")

    assert dialogue("ACL LOAD") == b"OK"
    assert dialogue("ACL USERS") == [b"default", b"joe"]
    assert b"(~a resetchannels -@all +get)" in dialogue("ACL LIST")[1]
    assert "sanitize-payload #148de9c5" in (tmp_path / "users.acl").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["users.acl"]


def test_loading_closes_users_that_are_gone_and_gives_the_others_their_new_rules(tmp_path: Path) -> None:
    dialogue = with_file(tmp_path, "user joe on nopass +@all\nuser amy on nopass +@all\n")
    joe, amy = dialogue.another(), dialogue.another()
    joe("AUTH joe x")
    amy("AUTH amy x")
    (tmp_path / "users.acl").write_text("user joe on nopass +ping\n")

    dialogue("ACL LOAD")

    assert dialogue.engine.clients.to_close == [amy.session]
    assert joe("PING") == b"PONG"
    assert str(joe("ECHO x")).startswith("NOPERM")


BAD_FILE = """user amy on +nosuch
foo bar

#c
user amy on
user bob (+get
user carl foo bar +nosuch &* &a
user
"""
COMPLAINTS = (
    "users.acl:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. "
    "users.acl:2 should start with user keyword followed by the username. "
    "users.acl:4 should start with user keyword followed by the username. "
    "WARNING: Duplicate user 'amy' found on line 5. "
    "users.acl:6: Unmatched parenthesis in selector definition."
    "users.acl:7: Syntax error. users.acl:7: Error in applying operation '+nosuch': Unknown command or category name"
    " in ACL. "
    "users.acl:8 should start with user keyword followed by the username. "
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
)


def test_a_bad_acl_file_changes_nothing(tmp_path: Path) -> None:
    dialogue = with_file(tmp_path, "user joe on +get\n")
    before = dialogue("ACL LIST")
    (tmp_path / "users.acl").write_text(BAD_FILE)

    assert str(dialogue("ACL LOAD")) == f"ERR {COMPLAINTS}"
    assert dialogue("ACL LIST") == before
    (tmp_path / "users.acl").unlink()
    assert str(dialogue("ACL LOAD")) == "ERR Error loading ACLs, opening file 'users.acl': No such file or directory"


def test_a_bad_acl_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Aborting Redis startup because of ACL errors: users"):
        with_file(tmp_path, BAD_FILE)


def test_a_password_without_effect_is_warned_of(tmp_path: Path) -> None:
    """As in Redis, the ACL file decides on the user `default`, also if it does not name it."""
    (tmp_path / "users.acl").write_text("user joe on nopass\n")
    open_to_all = make_engine(settings=settings_with(dir=str(tmp_path), aclfile="users.acl", requirepass="sec"))

    assert open_to_all.access.warning().startswith("requirepass is set, but")
    assert make_engine(settings=settings_with(requirepass="sec")).access.warning() == ""


def test_users_come_from_one_place(tmp_path: Path) -> None:
    (tmp_path / "users.acl").write_text("")
    with pytest.raises(UsageError, match="either an ACL file or declare users directly"):
        make_engine(settings=with_users("joe on", dir=str(tmp_path), aclfile="users.acl"))


def test_an_acl_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "users.acl").write_text("")
    dialogue = Dialogue(make_engine(settings=settings_with(dir=str(tmp_path), aclfile="folder/users.acl")))
    told: list[str] = []
    dialogue.engine.access.report = told.append
    shutil.rmtree(tmp_path / "folder")

    assert str(dialogue("ACL SAVE")).startswith("ERR There was an error trying to save the ACLs.")
    assert told == ["Saving the ACL file: No such file or directory"]
