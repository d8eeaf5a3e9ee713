"""XADDs that follow one another in a pipeline: `XADD key * field value ...`, all to one stream, with the same fields.

What one XADD does that depends on nothing but the stream is done once for all of them, and the rest by operations on
lists. The plain way, one by one (xadd.py), is the oracle beside which the tests run this one.
"""

from itertools import repeat
from typing import Final

from penstock.commands.context import Context
from penstock.commands.effects import pack
from penstock.commands.table import alike, together
from penstock.commands.xadd import LARGEST_ENTRY
from penstock.protocol import reply
from penstock.protocol.alike import Alike
from penstock.storage.ids import HALF
from penstock.storage.nodes import AlikeEntries
from penstock.storage.streams import Stream

MOST_FIELDS: Final = 64  # in an entry; rarer ones go one by one


@together("XADD")
def add_run(ctx: Context, requests: list[list[bytes]], start: int, answers: list[bytes]) -> int:
    """Append the entries of the requests from `start` on that have no options, and say which ids they got."""
    head, width = requests[start][:3], len(requests[start])
    if width < 5 or not width & 1 or width > 2 * MOST_FIELDS or head[2] != b"*":
        return 0
    stream = _ready_stream(ctx, head[1])
    if stream is None:
        return 0
    names = requests[start][3::2]
    run: list[list[bytes]] = []
    for at in range(start, len(requests)):
        request = requests[at]
        if len(request) != width or request[:3] != head or request[3::2] != names:
            break
        run.append(request[3:])
    if len(run) < 2:
        return 0
    packed = list(map(pack, map(tuple, run)))
    tails = [pairs[pairs.index(b"\n") + 1 :] for pairs in packed]
    return _append(ctx, stream, head, names, list(map(list, zip(*run, strict=True)))[1::2], tails, answers)


@alike("XADD")
def add_alike(ctx: Context, requests: Alike, answers: list[bytes]) -> int:
    """As `add_run`, of requests that were not taken apart."""
    if not requests.names or requests.head[2] != b"*":
        return 0
    stream = _ready_stream(ctx, requests.head[1])
    if stream is None:
        return 0
    return _append(ctx, stream, requests.head, requests.names, requests.columns, requests.tails, answers)


def _ready_stream(ctx: Context, key: bytes) -> Stream | None:
    """The stream at a key, if it is there and nobody waits for it: else one goes after the other."""
    stream = ctx.value(key)
    return stream if isinstance(stream, Stream) and not stream.strays and not ctx.is_awaited(key) else None


def _append(
    ctx: Context,
    stream: Stream,
    head: list[bytes],
    names: list[bytes],
    columns: list[list[bytes]],
    tails: list[bytes],
    answers: list[bytes],
) -> int:
    """Append an entry for each tail, its fields and values as they were sent; how many, or 0, and nothing done."""
    name, key = head[0], head[1]
    count = len(tails)
    first_id = stream.next_id(ctx.now_ms)
    if first_id is None or (first_id & HALF) + count > HALF or sum(map(len, tails)) > LARGEST_ENTRY:
        return 0
    texts = _id_replies(first_id >> 64, first_id & HALF, count)
    opening, pairs = b"*2\r\n", b"*%d\r\n" % (2 * len(names))
    entries = list(map(b"".join, zip(repeat(opening, count), texts, repeat(pairs, count), tails, strict=True)))
    stream.append_alike(first_id, entries, AlikeEntries(names, columns))
    ctx.dirty += count
    ctx.touch(key)
    if ctx.effects.log is not None:
        begin = b"*%d\r\n%b%b" % (3 + 2 * len(names), reply.bulk(name), reply.bulk(key))
        lines = list(map(b"".join, zip(repeat(begin, count), texts, tails, strict=True)))
        ctx.effects.add_units(ctx.db_index, lines)
    answers.extend(texts)
    return count


def _id_replies(ms: int, seq: int, count: int) -> list[bytes]:
    """The ids of one millisecond from a sequence number on, as bulk strings.

    >>> _id_replies(5, 9, 2)
    [b'$3\\r\\n5-9\\r\\n', b'$4\\r\\n5-10\\r\\n']
    """
    texts: list[bytes] = []
    stop = seq + count
    while seq < stop:
        digits = len(str(seq))
        end = min(stop, 10**digits)
        start = b"%d-" % ms
        begin = b"$%d\r\n%b" % (len(start) + digits, start)
        texts += map((begin + b"%d\r\n").__mod__, range(seq, end))
        seq = end
    return texts
