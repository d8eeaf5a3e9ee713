"""SUBSCRIBE and its kin, PUBLISH, PUBSUB."""

import random

import pytest

from penstock.clock import ManualClock
from penstock.engine.engine import Engine
from tests.support.clients_beside_redis import received
from tests.support.clock import NOW_MS
from tests.support.dialogue import NO_REPLY, Dialogue, decoded_all


def test_each_channel_of_a_request_is_confirmed_with_the_number_of_subscriptions(dialogue: Dialogue) -> None:
    assert decoded_all(dialogue.raw("SUBSCRIBE a b a")) == [
        [b"subscribe", b"a", 1],
        [b"subscribe", b"b", 2],
        [b"subscribe", b"a", 2],
    ]


def test_channels_and_patterns_are_counted_together_and_shard_channels_by_themselves(dialogue: Dialogue) -> None:
    assert dialogue("SUBSCRIBE a", "PSUBSCRIBE a*") == [b"psubscribe", b"a*", 2]
    assert dialogue("SSUBSCRIBE a") == [b"ssubscribe", b"a", 1]
    assert dialogue("UNSUBSCRIBE a") == [b"unsubscribe", b"a", 1]
    assert dialogue("SUNSUBSCRIBE a") == [b"sunsubscribe", b"a", 0]


def test_a_client_that_leaves_everything_has_each_channel_confirmed(dialogue: Dialogue) -> None:
    dialogue("HELLO 3")
    dialogue.raw("SUBSCRIBE a b")

    assert decoded_all(dialogue.raw("UNSUBSCRIBE")) == [[b"unsubscribe", b"a", 1], [b"unsubscribe", b"b", 0]]


@pytest.mark.parametrize("name", ["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"])
def test_a_client_that_listens_to_nothing_leaves_nothing(dialogue: Dialogue, name: str) -> None:
    assert dialogue(name) == [name.lower().encode(), None, 0]


def test_a_message_reaches_the_channels_listeners_and_those_of_patterns(dialogue: Dialogue) -> None:
    listener, watcher = dialogue.another(), dialogue.another()
    listener("SUBSCRIBE news")
    watcher("PSUBSCRIBE n*s")

    assert dialogue("PUBLISH news hello", "PUBLISH sports hello") == 0
    assert listener.arrived() == [[b"message", b"news", b"hello"]]
    assert watcher.arrived() == [[b"pmessage", b"n*s", b"news", b"hello"]]


def test_a_session_gets_a_message_once_for_each_way_in_which_it_listens(dialogue: Dialogue) -> None:
    listener = dialogue.another()
    listener("SUBSCRIBE news", "PSUBSCRIBE n*", "PSUBSCRIBE *s")

    assert dialogue("PUBLISH news hello") == 3
    assert len(listener.arrived()) == 3


def test_shard_channels_are_apart_from_channels_and_patterns(dialogue: Dialogue) -> None:
    listener = dialogue.another()
    listener("SUBSCRIBE news", "PSUBSCRIBE *", "SSUBSCRIBE tide")

    assert dialogue("SPUBLISH news x") == 0
    assert dialogue("SPUBLISH tide x") == 1
    assert listener.arrived() == [[b"smessage", b"tide", b"x"]]


def test_messages_are_pushes_in_resp3_and_arrays_in_resp2(dialogue: Dialogue) -> None:
    old, new = dialogue.another(), dialogue.another()
    new("HELLO 3")
    old("SUBSCRIBE c")
    new("SUBSCRIBE c")
    dialogue("PUBLISH c m")

    assert dialogue.engine.clients.outgoing == [
        (old.session, b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"),
        (new.session, b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"),
    ]


def test_what_a_session_publishes_to_itself_comes_after_the_reply(dialogue: Dialogue) -> None:
    dialogue("HELLO 3", "SUBSCRIBE c")

    assert dialogue("PUBLISH c m") == 1
    assert dialogue.arrived() == [[b"message", b"c", b"m"]]


def test_messages_of_a_transaction_come_after_the_reply_of_exec(dialogue: Dialogue) -> None:
    dialogue("HELLO 3", "SUBSCRIBE c", "MULTI", "PUBLISH c one", "PING", "PUBLISH c two")

    assert dialogue("EXEC") == [1, b"PONG", 1]
    assert dialogue.arrived() == [[b"message", b"c", b"one"], [b"message", b"c", b"two"]]


def test_a_publisher_held_back_by_a_pause_gets_its_reply_before_its_message(
    dialogue: Dialogue, clock: ManualClock
) -> None:
    other = dialogue.another()
    dialogue("HELLO 3", "SUBSCRIBE c")
    other("CLIENT PAUSE 100 ALL")
    dialogue("PUBLISH c m")
    clock.set_ms(NOW_MS + 100)
    dialogue.engine.tick()

    assert dialogue.arrived() == [1, [b"message", b"c", b"m"]]


@pytest.mark.parametrize(
    "line", ["GET x", "PUBLISH a b", "MULTI", "PUBSUB NUMPAT", "HELLO 3", "CLIENT ID", "SPUBLISH a b"]
)
def test_a_subscriber_of_resp2_may_do_little_else(dialogue: Dialogue, line: str) -> None:
    dialogue("SUBSCRIBE c")

    assert str(dialogue(line)).endswith(
        "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    )


def test_a_subscriber_of_resp3_may_do_everything(dialogue: Dialogue) -> None:
    assert dialogue("HELLO 3", "SUBSCRIBE c", "SET a 1", "GET a") == b"1"


@pytest.mark.parametrize("silence", ["CLIENT REPLY OFF", "CLIENT REPLY SKIP"])
def test_confirmations_come_even_where_no_replies_are_wanted(dialogue: Dialogue, silence: str) -> None:
    assert dialogue(silence, "SUBSCRIBE c") == NO_REPLY
    assert dialogue.arrived() == [[b"subscribe", b"c", 1]]


def test_a_skipped_subscription_uses_the_skip_up(dialogue: Dialogue) -> None:
    assert dialogue("CLIENT REPLY SKIP", "UNSUBSCRIBE", "PING") == b"PONG"


def test_messages_come_where_no_replies_are_wanted(dialogue: Dialogue) -> None:
    listener = dialogue.another()
    listener("CLIENT REPLY OFF", "SUBSCRIBE c")
    listener.arrived()
    dialogue("PUBLISH c m")

    assert listener.arrived() == [[b"message", b"c", b"m"]]


@pytest.mark.parametrize("way", ["reset", "disconnect"])
def test_reset_and_the_end_of_the_connection_end_every_subscription(dialogue: Dialogue, way: str) -> None:
    listener = dialogue.another()
    listener("SUBSCRIBE a", "PSUBSCRIBE *", "SSUBSCRIBE a")
    leave = {
        "reset": lambda: listener("RESET"),
        "disconnect": lambda: dialogue.engine.server.disconnect(listener.session),
    }
    leave[way]()

    assert dialogue("PUBLISH a m") == dialogue("SPUBLISH a m") == dialogue("PUBSUB NUMPAT") == 0
    assert dialogue("PUBSUB CHANNELS") == dialogue("PUBSUB SHARDCHANNELS") == []


def test_pubsub_tells_channels_and_how_many_listen(dialogue: Dialogue) -> None:
    one, other = dialogue.another(), dialogue.another()
    one("SUBSCRIBE news", "SUBSCRIBE nets", "PSUBSCRIBE x*")
    other("SUBSCRIBE news", "PSUBSCRIBE x*", "SSUBSCRIBE tide")

    assert dialogue("PUBSUB CHANNELS") == [b"news", b"nets"]
    assert dialogue("PUBSUB CHANNELS *ew*") == [b"news"]
    assert dialogue("PUBSUB NUMSUB news nobody news") == [b"news", 2, b"nobody", 0, b"news", 2]
    assert dialogue("PUBSUB NUMPAT") == 1
    assert dialogue("PUBSUB SHARDCHANNELS") == [b"tide"]
    assert dialogue("PUBSUB SHARDNUMSUB tide") == [b"tide", 1]


def test_info_and_client_list_show_subscriptions(dialogue: Dialogue) -> None:
    listener = dialogue.another()
    listener("SUBSCRIBE a", "SUBSCRIBE b", "PSUBSCRIBE *", "SSUBSCRIBE c")

    assert b"sub=2 psub=1 ssub=1" in dialogue.raw("CLIENT LIST TYPE pubsub")
    assert b"pubsub_channels:2\r\npubsub_patterns:1\r\npubsubshard_channels:1\r\n" in dialogue.raw("INFO stats")


def test_random_subscriptions_keep_both_sides_in_agreement(engine: Engine) -> None:
    chance = random.Random(7)
    clients = [Dialogue(engine) for _ in range(5)]
    for _ in range(2000):
        name = chance.choice(["", "P", "S"]) + chance.choice(["SUBSCRIBE", "SUBSCRIBE", "UNSUBSCRIBE"])
        chance.choice(clients).raw(" ".join([name, *chance.choices(["a", "b", "a*", "*"], k=chance.randrange(1, 4))]))
        chance.choice(clients).raw(chance.choice(["RESET", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "PING"]))
        engine.server.subscriptions.check(list(engine.clients.sessions.values()))


SCRIPTS = {
    "confirmations": [
        "a2 SUBSCRIBE c1 c2 c1", "a2 UNSUBSCRIBE c1", "a2 UNSUBSCRIBE", "a2 UNSUBSCRIBE", "a2 UNSUBSCRIBE x y",
        "a2 PUNSUBSCRIBE", "a2 SUNSUBSCRIBE", "a2 PSUBSCRIBE p* p* q*", "a2 SSUBSCRIBE s s", "a2 PUNSUBSCRIBE p*",
        "b3 UNSUBSCRIBE", "b3 SUBSCRIBE x y", "b3 PSUBSCRIBE '' x*", "b3 SUNSUBSCRIBE", "b3 UNSUBSCRIBE y x z",
    ],
    "a subscriber of RESP2": [
        "a2 SUBSCRIBE a", "a2 PING", "a2 PING x", "a2 PING x y", "a2 GET x", "a2 PUBLISH a b", "a2 PUBSUB NUMPAT",
        "a2 PUBSUB FOO", "a2 PUBSUB", "a2 SUBSCRIBE", "a2 MULTI", "a2 FOO", "a2 RESET", "a2 GET x", "a2 PING",
        "a2 SSUBSCRIBE a", "a2 GET x", "a2 SUNSUBSCRIBE", "a2 GET x",
    ],
    "messages": [
        "a2 SUBSCRIBE news", "b3 SUBSCRIBE news", "b3 PSUBSCRIBE n*", "c3 PSUBSCRIBE *", "d2 PUBLISH news x",
        "d2 PUBLISH '' x", "d2 PUBLISH news ''", "b3 PUBLISH news self", "b3 SSUBSCRIBE s", "b3 SPUBLISH s x",
        "b3 SPUBLISH news x", "b3 PING", "b3 PING x", "d2 PUBLISH news y",
    ],
    "transactions": [
        "a3 MULTI", "a3 SUBSCRIBE m n", "a3 PING", "a3 PUBLISH m x", "a3 UNSUBSCRIBE m", "a3 PSUBSCRIBE m*",
        "a3 PUBLISH m y", "a3 EXEC", "a3 MULTI", "b2 PUBLISH m z", "a3 PING", "a3 EXEC", "b2 MULTI", "b2 SUBSCRIBE m",
        "b2 GET x", "b2 PING", "b2 PUBLISH m w", "b2 EXEC", "b2 GET x", "c2 MULTI", "c2 FOO", "c2 SUBSCRIBE m",
        "c2 EXEC", "c2 PING",
    ],
    "silence": [
        "a2 CLIENT REPLY OFF", "a2 MULTI", "a2 SUBSCRIBE x y", "a2 PING", "a2 EXEC", "b2 PUBLISH x 1", "a2 PING",
        "a2 SUBSCRIBE", "a2 UNSUBSCRIBE x y", "a2 CLIENT REPLY ON", "a2 CLIENT REPLY SKIP", "a2 UNSUBSCRIBE", "a2 PING",
        "c3 CLIENT REPLY OFF", "c3 SUBSCRIBE x", "c3 PUBLISH x 1", "c3 CLIENT REPLY ON",
    ],
    "pubsub": [
        "a2 SUBSCRIBE a", "a2 PSUBSCRIBE a*", "b3 PSUBSCRIBE a* b*", "b3 SSUBSCRIBE s", "c3 PUBSUB CHANNELS",
        "c3 PUBSUB CHANNELS b", "c3 PUBSUB CHANNELS a b", "c3 PUBSUB NUMSUB", "c3 PUBSUB NUMSUB a b",
        "c2 PUBSUB NUMPAT", "c3 PUBSUB NUMPAT x", "c3 PUBSUB SHARDCHANNELS", "c3 PUBSUB SHARDCHANNELS x*",
        "c3 PUBSUB SHARDNUMSUB s t", "c3 PUBSUB HELP x", "c3 PUBSUB FOO", "c3 PUBSUB", "d2 SUBSCRIBE ''",
        "c3 PUBSUB CHANNELS ''", "c3 PUBLISH a", "c3 PUBSUB CHANNELS *", "c3 SPUBLISH a",
    ],
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_every_client_gets_the_bytes_that_redis_sends(reference_port: int, script: list[str]) -> None:
    theirs, here = received(reference_port, script)

    assert here == theirs
