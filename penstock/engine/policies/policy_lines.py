"""The log's private lines about policies: what they are, in the words of PENSTOCK.POLICY."""

from collections.abc import Iterator
from typing import Final

from penstock.engine.context import Context
from penstock.protocol import private_lines, reply
from penstock.storage.keyspace import Keyspace
from penstock.storage.policies.group_policy import EXPIRE, EXPIRE_AT, FOREVER, GroupPolicy, GroupSettings
from penstock.storage.policies.stream_policies import NONE, StreamPolicies, StreamSettings
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.pending.group import Group
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import ACKNOWLEDGED, DELETE_REFERENCES

AUX_FIELD: Final = b"penstock-policies"  # of an RDB file; a Redis skips AUX fields that it does not know
MOST_IDS: Final = 1000  # of one line
MOST_PAIRS: Final = 500  # of one line


def log(ctx: Context, words: list[bytes]) -> None:
    """A request that only Penstock knows, as a line of the log's next unit."""
    if ctx.effects.log is not None:
        ctx.effects.add_packed(ctx.db_index, private_lines.packed(words))


def log_floor(ctx: Context, key: bytes, floor: StreamId) -> None:
    log(ctx, [b"PENSTOCK.POLICY", key, b"FLOOR", ids.text(floor)])


def log_copied_to(ctx: Context, key: bytes, policies: StreamPolicies) -> None:
    """The last copy of EVERY. Only the log may say FORWARDED."""
    log(ctx, _copied_to(key, policies))


def _copied_to(key: bytes, policies: StreamPolicies) -> list[bytes]:
    ms, entry_id = policies.copied_to
    return [b"PENSTOCK.POLICY", key, b"FORWARDED", b"%d" % ms, ids.text(entry_id)]


def log_hold(ctx: Context, key: bytes, group: Group, texts: list[bytes], count: int, until_ms: int) -> None:
    """Released entries with one delivery count are held until a moment."""
    log(ctx, _hold(key, group, texts, count, until_ms))


def log_rated(ctx: Context, key: bytes, group: Group, pairs: list[int]) -> None:
    """RATE counts entries that were handed out: moments and numbers. Only the log may say RATED."""
    log(ctx, _rated(key, group, pairs))


def _rated(key: bytes, group: Group, pairs: list[int]) -> list[bytes]:
    return [b"PENSTOCK.POLICY", key, b"GROUP", group.name, b"RATED", *[b"%d" % number for number in pairs]]


def log_attempt(ctx: Context, key: bytes, group: Group, entry_id: StreamId, deliveries: int, consumer: bytes) -> None:
    """Log the text of a released entry's dead letter. Only the log may say ATTEMPTED."""
    log(ctx, _attempt(key, group, entry_id, deliveries, consumer))


def _attempt(key: bytes, group: Group, entry_id: StreamId, deliveries: int, consumer: bytes) -> list[bytes]:
    words = [b"ATTEMPTED", ids.text(entry_id), b"%d" % deliveries, consumer]
    return [b"PENSTOCK.POLICY", key, b"GROUP", group.name, *words]


def _hold(key: bytes, group: Group, texts: list[bytes], count: int, until_ms: int) -> list[bytes]:
    tail = [b"RETRYCOUNT", b"%d" % count, b"UNTIL", b"%d" % until_ms]
    return [b"PENSTOCK.XNACK", key, group.name, b"FAIL", b"IDS", b"%d" % len(texts), *texts, *tail]


def base_requests(key: bytes, stream: Stream, now_ms: int) -> Iterator[list[bytes]]:
    """The requests that set a stream's policies anew, and what is held of its groups."""
    policies = stream.policies
    if policies is None:
        return
    words = stream_words(policies.settings, policies)
    if words:
        yield [b"PENSTOCK.POLICY", key, *words]
    if policies.settings.every_field is not None:
        yield _copied_to(key, policies)
    for group in stream.groups_by_name():
        if group.policy is not None:
            yield from _group_requests(key, group, group.policy, now_ms)


def _group_requests(key: bytes, group: Group, policy: GroupPolicy, now_ms: int) -> Iterator[list[bytes]]:
    words = group_words(policy.settings, now_ms)
    if words:
        yield [b"PENSTOCK.POLICY", key, b"GROUP", group.name, *words]
    counted = [pair for pair in policy.window.pairs if pair[0] > now_ms - policy.settings.rate_ms]
    for at in range(0, len(counted), MOST_PAIRS):
        yield _rated(key, group, [number for pair in counted[at : at + MOST_PAIRS] for number in pair])
    for entry_id, (deliveries, consumer) in policy.attempts.items():
        yield _attempt(key, group, entry_id, deliveries, consumer)
    texts: list[bytes] = []
    former = (0, 0)
    for until_ms, _, entry_id in policy.held(now_ms):
        found = group.pel.by_id.find(entry_id)
        assert found is not None, "a held entry is pending"
        now = (found[0].counts[found[1]], until_ms)
        if texts and (now != former or len(texts) == MOST_IDS):
            yield _hold(key, group, texts, *former)
            texts = []
        former = now
        texts.append(ids.text(entry_id))
    if texts:
        yield _hold(key, group, texts, *former)


def base_lines(key: bytes, stream: Stream, now_ms: int) -> Iterator[bytes]:
    """`base_requests` as private lines, for a new base file."""
    for request in base_requests(key, stream, now_ms):
        yield private_lines.packed(request)


def of_keyspace(keyspace: Keyspace, now_ms: int) -> bytes:
    """All policies and holds as requests, for an RDB file; empty if there are none."""
    parts: list[bytes] = []
    for index, db in enumerate(keyspace.databases):
        for key in db.policies_due.times:
            value = db.values[key]
            if isinstance(value, Stream):
                parts.append(reply.bulks([b"SELECT", b"%d" % index]))
                parts += [reply.bulks(request) for request in base_requests(key, value, now_ms)]
    return b"".join(parts)


def stream_words(settings: StreamSettings, policies: StreamPolicies) -> list[bytes]:
    """The options that say what is set for a stream; FLOOR is understood by the log's replay only."""
    references = {ACKNOWLEDGED: [b"ACKED"], DELETE_REFERENCES: [b"DELREF"]}
    return [
        *_number(b"MAXLEN", settings.max_length),
        *_number(b"MAXAGE", settings.max_age_ms),
        *_number(b"MAXBYTES", settings.max_bytes),
        *_number(b"IDLEGROUP", settings.idle_group_ms),
        *references.get(settings.references, []),
        *_name(b"FORWARD", settings.forward),
        *_name(b"AT", settings.at_field),
        *_number(b"AFTER", settings.after_ms),
        *_name(b"EVERY", settings.every_field),
        *_name(b"MISSED", settings.missed),
        *_name(b"FLOOR", None if policies.floor == ids.ZERO else ids.text(policies.floor)),
    ]


def _number(option: bytes, number: int, *more: int) -> list[bytes]:
    """The words of an option of one number or several; none where it is not set."""
    return [] if number == NONE else [option, b"%d" % number, *[b"%d" % other for other in more]]


def _name(option: bytes, name: bytes | None) -> list[bytes]:
    """As `_number`."""
    return [] if name is None else [option, name]


def group_words(settings: GroupSettings, now_ms: int) -> list[bytes]:
    """The options that say what is set for a group; a pause that is over is not."""
    pause_end_ms = settings.pause_end_ms(now_ms)
    return [
        *_number(b"ACKWAIT", settings.ack_wait_ms),
        *_number(b"BACKOFF", settings.backoff_min_ms, settings.backoff_max_ms),
        *_number(b"JITTER", settings.jitter_percent),
        *_number(b"MAXDELIVER", settings.max_deliver),
        *_name(b"DEADLETTER", settings.dead_letter),
        *_name(b"KEY", settings.key_field),
        *_number(b"REAP", settings.reap_ms),
        *(() if pause_end_ms == NONE else pause_words(pause_end_ms)),
        *_number(b"RATE", settings.rate, settings.rate_ms),
        *_number(b"INFLIGHT", settings.in_flight),
        *_number(b"PARALLEL", settings.parallel),
        *((b"FAIR", b"YES") if settings.fair else ()),
        *_name(b"PRIORITY", settings.priority_field),
        *_number(b"AGING", settings.aging_ms),
        *_number(b"LOOKAHEAD", settings.look_ahead),
        *_number(EXPIRE, settings.expire_ms),
        *_name(EXPIRE_AT, settings.expire_field),
        *((b"ONDISCONNECT", b"RELEASE") if settings.gives_back else ()),
    ]


def pause_words(until_ms: int) -> tuple[bytes, bytes]:
    """The option that says when a pause ends; NONE: there is none."""
    return b"PAUSE", b"NONE" if until_ms == NONE else b"FOREVER" if until_ms == FOREVER else b"%d" % until_ms
