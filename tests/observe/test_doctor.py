"""`penstock doctor URL`: each trouble is found, with a command that the server takes; on Penstock, Redis and Valkey."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

import penstock
from penstock import cli
from penstock.observe import server_checks, stream_survey
from penstock.observe.finding import Finding
from penstock.observe.server_checks import Asked, of_clients, of_replication, of_sentinel, of_watched
from penstock.observe.stream_survey import Survey
from penstock.wire_client import address
from tests.support.reference_server import NoReference, reference_binary, reference_server

QUIET = {"connected_clients": "1", "maxclients": "9", "blocked_clients": "0", "rejected_connections": "0",
         "total_commands_processed": "9"}  # fmt: skip


@pytest.fixture(params=["penstock", "redis", "valkey"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "penstock":
        with penstock.Server(dir=tmp_path) as server:
            yield server.url
        return
    try:
        with reference_server("--appendonly", "yes", binary=reference_binary(request.param)) as port:
            yield f"redis://127.0.0.1:{port}"
    except NoReference as absence:
        pytest.skip(str(absence))


def found_by_doctor(capsys: pytest.CaptureFixture[str], url: str, *words: str) -> dict[str, Any]:
    """The findings that are problems or hints, by what they are about."""
    cli.main(["doctor", "--json", "--between", "0", *words, url])
    return {one["about"]: one for one in json.loads(capsys.readouterr().out) if one["level"] != "ok"}


def with_stuck_group(client: Any) -> None:
    client.xadd("my orders", {"f": "v"})
    client.xgroup_create("my orders", "workers", "0")
    client.xreadgroup("workers", "alice", {"my orders": ">"})


def with_lag(client: Any) -> None:
    pipe = client.pipeline(transaction=False)
    for _ in range(server_checks.LARGE_LAG):
        pipe.xadd("mails", {"f": "v"})
    pipe.execute()
    client.xgroup_create("mails", "senders", "0")


def with_large_stream(client: Any) -> None:
    pipe = client.pipeline(transaction=False)
    for _ in range(server_checks.LARGE_STREAM):
        pipe.xadd("big", {"f": "v"})
    pipe.execute()


def with_eviction(client: Any) -> None:
    client.xadd("s", {"f": "v"})
    client.config_set("maxmemory", "1gb")
    client.config_set("maxmemory-policy", "allkeys-lru")


def with_unsynced_log(client: Any) -> None:
    client.config_set("appendfsync", "no")


def with_pause(client: Any) -> None:
    client.xgroup_create("paused", "g", "0", mkstream=True)
    client.execute_command("PENSTOCK.POLICY", "paused", "GROUP", "g", "RATE", 5, 1000, "PAUSE", "FOREVER")


SCENES = [
    pytest.param(with_stuck_group, "pending", 'XAUTOCLAIM "my orders" workers CONSUMER 0 0 COUNT 100', id="pending"),
    pytest.param(with_lag, "lag", "XINFO CONSUMERS mails senders", id="a group that falls behind"),
    pytest.param(with_large_stream, "no limit", "XTRIM big MAXLEN ~ LENGTH", id="a stream without a limit"),
    pytest.param(with_eviction, "eviction", "CONFIG SET maxmemory-policy noeviction", id="eviction takes streams"),
    pytest.param(with_unsynced_log, "appendfsync", "CONFIG SET appendfsync everysec", id="appendfsync no"),
    pytest.param(lambda client: None, "memory", "CONFIG SET maxmemory 2gb", id="no maxmemory"),
    pytest.param(lambda client: None, "replicas", "REPLICAOF MASTER-HOST MASTER-PORT", id="no replica"),
]


@pytest.mark.parametrize(("scene", "about", "command"), SCENES)
def test_a_trouble_is_found_with_the_command_that_mends_it(
    url: str, capsys: pytest.CaptureFixture[str], scene: Any, about: str, command: str
) -> None:
    client = redis.Redis.from_url(url, decode_responses=True)
    before = found_by_doctor(capsys, url, "--old", "0")
    scene(client)
    after = found_by_doctor(capsys, url, "--old", "0")

    assert after[about]["command"] == command
    assert about not in before or scene.__name__ == "<lambda>"
    mended = shlex.split(command.replace("MASTER-HOST MASTER-PORT", "NO ONE").replace("LENGTH", "100"))
    client.execute_command(*mended)


def test_consumers_without_a_sign_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        with_stuck_group(server.client())
        server.clock.advance(seconds=61)
        found = found_by_doctor(capsys, server.url)

    assert found["consumers"]["found"] == "my orders, group workers: 1 of 1 gone"
    assert "pending" not in found, "61 seconds are fewer than the bound"


def test_a_pause_is_a_hint_and_limits_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        with_pause(server.client())
        paused = found_by_doctor(capsys, server.url)["paused"]
        server.client().execute_command(*shlex.split(paused["command"]))
        after = found_by_doctor(capsys, server.url)
        cli.main(["doctor", "--between", "0", server.url])

    assert paused["found"] == "paused, group g: paused, 0 of 5 in 1000 ms"
    assert "paused" not in after
    assert "paused, group g: 0 of 5 in 1000 ms" in capsys.readouterr().out


def test_dead_letters_and_what_keeps_them_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        client: Any = server.client()
        with_lag(client)
        client.execute_command("PENSTOCK.POLICY mails GROUP senders DEADLETTER aside")
        [[_, entries]] = client.xreadgroup("senders", "s1", {"mails": ">"}, count=2)
        client.execute_command("XNACK", "mails", "senders", "FATAL", "IDS", 1, entries[0][0])
        letters = found_by_doctor(capsys, server.url)["dead letters"]
        assert client.execute_command(*shlex.split(letters["command"])) == 1
        client.delete("aside")
        client.set("aside", "text")
        client.execute_command("XNACK", "mails", "senders", "FATAL", "IDS", 1, entries[1][0])
        kept = found_by_doctor(capsys, server.url)["blocked"]

        assert kept["found"] == "mails, group senders: nothing moves: aside holds a string"
        assert kept["level"] == "problem"
        assert client.execute_command(*shlex.split(kept["command"])) in ("string", b"string")


@pytest.mark.parametrize("policy", ["MAXLEN 1000000", "MAXLEN 0 ACKED"])
def test_a_stream_that_a_policy_trims_has_a_limit(capsys: pytest.CaptureFixture[str], policy: str) -> None:
    with penstock.Server() as server:
        with_large_stream(server.client())
        server.client().execute_command(f"PENSTOCK.POLICY big {policy}")
        found = found_by_doctor(capsys, server.url)

    assert "no limit" not in found


def test_what_a_user_may_not_ask_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        with_stuck_group(server.client())
        server.client().execute_command("ACL SETUSER watcher on >w ~* +info +scan +xinfo +xpending +xlen")
        found = found_by_doctor(capsys, server.url.replace("//", "//watcher:w@"), "--old", "0")

    assert found["pending"]["level"] == "problem"


def asked_of(fields: dict[str, str], url: str = "redis://127.0.0.1", sentinels: int = 0, **config: str) -> Asked:
    settings = {name.replace("_", "-"): value for name, value in config.items()}
    return Asked(address(url), QUIET | fields, settings, Survey({}, [], [], 0, 0, True), [], [], 0, sentinels, [])


def problems(found: Iterator[Finding]) -> list[tuple[str, str]]:
    return [(one.about, one.found) for one in found if one.level == "problem"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://10.0.0.7", [("encryption", "none"), ("password", "none")]),
        ("rediss://10.0.0.7", [("password", "none")]),
        ("rediss://:secret@10.0.0.7", []),
        ("redis://localhost", []),
        ("redis://[::1]", []),
        ("unix:///run/x.sock", []),
    ],
)
def test_a_way_that_others_can_read_is_a_problem(url: str, expected: list[tuple[str, str]]) -> None:
    assert problems(of_clients(asked_of({}, url, requirepass=""))) == expected


def test_what_clients_ask_as_they_connect_is_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        for _ in range(30):
            with redis.from_url(server.url) as client:
                client.get("k")
        quiet = found_by_doctor(capsys, server.url)
        for _ in range(30):
            with pytest.raises(redis.ResponseError), redis.from_url(server.url) as client:
                client.lpush("k")
        failing = found_by_doctor(capsys, server.url)

    assert ("requests" in quiet, failing["requests"]["level"]) == (False, "problem")


def test_links_that_are_down_are_problems() -> None:
    replica = asked_of({"role": "slave", "master_host": "h", "master_port": "1", "master_link_status": "down"})
    master = asked_of({"role": "master", "slave0": "ip=a,port=7,state=online", "slave1": "ip=b,port=8,state=send_bulk"})

    assert problems(of_replication(replica)) == [("replica", "of h:1")]
    assert problems(of_replication(master)) == [("replica", "b:8, send_bulk")]


def test_replicas_that_announce_one_address_are_a_problem() -> None:
    line = "ip=a,port=7,state=online"
    fields = {"role": "master", "slave0": line, "slave1": line, "slave2": "ip=b,port=7,state=online"}

    assert problems(of_replication(asked_of(fields))) == [("address", "a:7")]


@pytest.mark.parametrize(("needed", "expected"), [("0", [("lost writes", "min-replicas-to-write 0")]), ("1", [])])
def test_a_master_that_takes_writes_without_its_replicas_gets_a_hint(
    needed: str, expected: list[tuple[str, str]]
) -> None:
    fields = {"role": "master", "slave0": "ip=a,port=7,state=online"}
    found = of_replication(asked_of(fields, min_replicas_to_write=needed))

    assert [(one.about, one.found) for one in found if one.level == "hint"] == expected


WATCHED = {"requirepass": "secret", "masterauth": "secret"}


@pytest.mark.parametrize(
    ("file", "sentinels", "config", "expected"),
    [
        pytest.param("a.conf", 3, WATCHED, [], id="all that they need"),
        pytest.param("a.conf", 3, {"requirepass": "", "masterauth": ""}, [], id="no passwords"),
        pytest.param("", 0, {"requirepass": "secret", "masterauth": ""}, [], id="no Sentinels"),
        pytest.param("a.conf", 2, WATCHED, [("watched", "by 2 Sentinels")], id="few"),
        pytest.param("", 3, WATCHED, [("role", "no configuration file")], id="no file"),
        pytest.param("a.conf", 3, WATCHED | {"masterauth": ""}, [("masterauth", "none")], id="no masterauth"),
    ],
)
def test_what_sentinels_lack_is_a_problem(
    file: str, sentinels: int, config: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    found = of_watched(asked_of({"config_file": file}, sentinels=sentinels, **config))

    assert problems(found) == expected


def test_what_the_user_of_sentinels_lacks_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    client = redis.Redis.from_url(url)
    client.execute_command("ACL SETUSER watcher on >w resetchannels &__sentinel__:hello -@all +subscribe +client")
    watcher = redis.Redis.from_url(url, username="watcher", password="w", client_name="sentinel-0a1b2c3d-cmd")
    with pytest.raises(redis.exceptions.NoPermissionError):
        watcher.execute_command("CONFIG", "REWRITE")
    with watcher.pubsub() as hello:
        hello.subscribe("__sentinel__:hello")
        hello.get_message(timeout=None)
        found = found_by_doctor(capsys, url)

    assert found["watched"]["found"] == "by 1 Sentinels"
    assert found["sentinel's user"]["found"] == "+config|rewrite"
    client.execute_command(*shlex.split(found["sentinel's user"]["command"].replace("NAME", "watcher")))
    with pytest.raises(redis.exceptions.ResponseError, match="without a config file"):
        watcher.execute_command("CONFIG", "REWRITE")


def test_a_sentinel_says_what_is_wrong_with_its_masters() -> None:
    good = {"master0": "name=one,status=ok,address=h:1,slaves=2,sentinels=3"}
    bad = {"master1": "name=two,status=odown,address=h:2,slaves=0,sentinels=1"}

    assert problems(of_sentinel(good)) == []
    assert problems(of_sentinel(bad)) == [("master", "two at h:2: odown"), ("replicas", "0"), ("sentinels", "1")]


def test_many_groups_in_trouble_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        for number in range(server_checks.GROUPS_SHOWN + 3):
            server.client().xgroup_create(f"s{number}", "g", "0", mkstream=True)
            server.client().xadd(f"s{number}", {"f": "v"})
            server.client().xreadgroup("g", "alice", {f"s{number}": ">"})
        server.clock.advance(hours=1)
        found = found_by_doctor(capsys, server.url)

    assert found["pending"]["found"] == "3 more groups"


def test_the_exit_code_tells_problems_from_hints(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server(maxmemory="1gb", appendonly="no", save="") as server:
        server.client().config_set("appendonly", "no")
        codes = [cli.main(["doctor", "--between", "0", server.url])]
        server.client().config_set("maxmemory", "0")
        codes.append(cli.main(["doctor", "--between", "0", server.url]))

    printed = capsys.readouterr().out
    assert "> CONFIG SET maxmemory 2gb" in printed
    assert codes[1] == 1
    assert cli.main(["doctor", "redis://127.0.0.1:1"]) == 2


def test_names_that_are_not_utf_8_can_be_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with penstock.Server() as server:
        server.client().xgroup_create(b"\xff", "g", "0", mkstream=True)
        server.client().xadd(b"\xff", {"f": "v"})
        server.client().xreadgroup("g", "alice", {b"\xff": ">"})
        found = found_by_doctor(capsys, server.url, "--old", "0")

    assert found["pending"]["found"].startswith("\\xff, group g")


def test_the_commands_of_a_look_are_bounded() -> None:
    watch = stream_survey.Watch()
    watch.keys = dict.fromkeys([b"%d" % number for number in range(50_000)])

    assert len(watch.due(stream_survey.FIRST_ASKED)) == stream_survey.FIRST_ASKED
