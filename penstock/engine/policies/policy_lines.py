"""The log's private lines about policies: what they are, in the words of PENSTOCK.POLICY."""

from collections.abc import Iterator

from penstock.engine.context import Context
from penstock.protocol import private_lines
from penstock.storage.policies.stream_policies import NONE, StreamPolicies, StreamSettings
from penstock.storage.streams import ids
from penstock.storage.streams.ids import StreamId
from penstock.storage.streams.stream import ACKNOWLEDGED, DELETE_REFERENCES, Stream


def log(ctx: Context, words: list[bytes]) -> None:
    """A request that only Penstock knows, as a line of the log's next unit."""
    if ctx.effects.log is not None:
        ctx.effects.add_packed(ctx.db_index, private_lines.packed(words))


def log_floor(ctx: Context, key: bytes, floor: StreamId) -> None:
    log(ctx, [b"PENSTOCK.POLICY", key, b"FLOOR", ids.text(floor)])


def base_requests(key: bytes, stream: Stream) -> Iterator[list[bytes]]:
    """The requests that set a stream's policies anew."""
    policies = stream.policies
    if policies is None:
        return
    words = stream_words(policies.settings, policies)
    if words:
        yield [b"PENSTOCK.POLICY", key, *words]


def base_lines(key: bytes, stream: Stream) -> Iterator[bytes]:
    """`base_requests` as private lines, for a new base file."""
    for request in base_requests(key, stream):
        yield private_lines.packed(request)


def stream_words(settings: StreamSettings, policies: StreamPolicies) -> list[bytes]:
    """The options that say what is set for a stream; FLOOR is understood by the log's replay only."""
    words: list[bytes] = []
    for name, number in ((b"MAXLEN", settings.max_length), (b"MAXAGE", settings.max_age_ms)):
        if number != NONE:
            words += (name, b"%d" % number)
    if settings.references == ACKNOWLEDGED:
        words.append(b"ACKED")
    elif settings.references == DELETE_REFERENCES:
        words.append(b"DELREF")
    if policies.floor != ids.ZERO:
        words += (b"FLOOR", ids.text(policies.floor))
    return words
