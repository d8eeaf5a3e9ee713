"""XADDs that follow one another in a pipeline: `XADD key [MAXLEN ~ length] * field value ...`, alike but for values.

What one XADD does that depends on nothing but the stream is done once for all of them, and the rest by operations on
lists. The plain way, one by one (xadd.py), is the oracle beside which the tests run this one.
"""

from typing import Final

from penstock.commands.streams.stream_arguments import TrimWords
from penstock.commands.streams.xadd import LARGEST_ENTRY
from penstock.engine.context import Context
from penstock.engine.effects import pack
from penstock.engine.table.command_table import alike, together
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import Alike
from penstock.storage.streams.ids import HALF
from penstock.storage.streams.listpack_nodes import AlikeEntries
from penstock.storage.streams.stream import KEEP_REFERENCES, Stream, Trim

MOST_FIELDS: Final = 64  # in an entry; rarer ones go one by one
_NUMBER_LINES: Final = [b"%d\r\n" % number for number in range(1000)]  # sequence numbers that a millisecond sees


@together("XADD")
def add_run(ctx: Context, requests: list[list[bytes]], start: int, answers: list[bytes]) -> int:
    """Append the entries of the requests from `start` on that begin alike, and say which ids they got."""
    width = len(requests[start])
    fields_at = 3 if width < 8 or requests[start][2] == b"*" else 6
    head = requests[start][:fields_at]
    if width < fields_at + 2 or (width - fields_at) & 1 or width > 2 * MOST_FIELDS:
        return 0
    stream = _ready_stream(ctx, head)
    if stream is None:
        return 0
    trim = _trim_of(stream, head)
    if trim is None and len(head) > 3:
        return 0
    most = len(requests) if trim is None else start + trim.threshold - 1
    names = requests[start][fields_at::2]
    run: list[list[bytes]] = []
    for at in range(start, min(len(requests), most)):
        request = requests[at]
        if len(request) != width or request[:fields_at] != head or request[fields_at::2] != names:
            break
        run.append(request[fields_at:])
    if len(run) < 2:
        return 0
    packed = list(map(pack, map(tuple, run)))
    tails = [pairs[pairs.index(b"\n") + 1 :] for pairs in packed]
    return _append(ctx, stream, head, names, list(map(list, zip(*run, strict=True)))[1::2], tails, answers, trim)


@alike("XADD")
def add_alike(ctx: Context, requests: Alike, answers: list[bytes]) -> int:
    """As `add_run`, of requests that were not taken apart."""
    if not requests.names:
        return 0
    stream = _ready_stream(ctx, requests.head)
    if stream is None:
        return 0
    trim = _trim_of(stream, requests.head)
    if (trim is None and len(requests.head) > 3) or (trim is not None and len(requests.tails) >= trim.threshold):
        return 0
    return _append(ctx, stream, requests.head, requests.names, requests.columns, requests.tails, answers, trim)


def _ready_stream(ctx: Context, head: list[bytes]) -> Stream | None:
    """The stream that requests are for whose ids the server makes, if it is there and nobody waits for it.

    Else one goes after the other.
    """
    if head[-1] != b"*" or len(head) not in (3, 6):
        return None
    stream = ctx.value(head[1])
    return stream if isinstance(stream, Stream) and not stream.rewound and not ctx.is_awaited(head[1]) else None


def _append(
    ctx: Context,
    stream: Stream,
    head: list[bytes],
    names: list[bytes],
    columns: list[list[bytes]],
    tails: list[bytes],
    answers: list[bytes],
    trim: Trim | None,
) -> int:
    """Append an entry for each tail, its fields and values as they were sent; how many, or 0, and nothing done.

    Where there is a trim, they are fewer than the length that it leaves.
    """
    count = len(tails)
    first_id = stream.next_id(ctx.now_ms)
    if first_id is None or (first_id & HALF) + count > HALF or sum([len(tail) for tail in tails]) > LARGEST_ENTRY:
        return 0
    texts = _id_replies(first_id >> 64, first_id & HALF, count)
    opening, pairs = b"*2\r\n", b"*%d\r\n" % (2 * len(names))
    entries = [opening + texts[at] + pairs + tail for at, tail in enumerate(tails)]
    lengths = [] if trim is None else stream.lengths_of_trims(trim, count)
    stream.append_alike(first_id, entries, AlikeEntries(names, columns))
    if trim is not None:
        stream.trim(trim._replace(threshold=lengths[-1], limit=0), [])
    ctx.dirty += count
    ctx.touch(head[1])
    if ctx.effects.log is not None:
        begin = b"*%d\r\n%b" % (len(head) + 2 * len(names), b"".join(map(reply.bulk, head[: 3 if lengths else 2])))
        if lengths:
            exact = [b"$1\r\n=\r\n" + reply.bulk(b"%d" % length) for length in lengths]
            lines = [begin + exact[at] + texts[at] + tail for at, tail in enumerate(tails)]
        else:
            lines = [begin + texts[at] + tail for at, tail in enumerate(tails)]
        ctx.effects.add_units(ctx.db_index, lines)
    answers.extend(texts)
    return count


def _trim_of(stream: Stream, head: list[bytes]) -> Trim | None:
    """The trim of `XADD key MAXLEN ~ length *`; None where the head is another."""
    if len(head) != 6 or head[2].upper() != b"MAXLEN" or head[3] != b"~":
        return None
    trim = TrimWords()
    try:
        trim.read(head, 2)
    except ReplyError:
        return None
    return trim.trim(KEEP_REFERENCES, stream.limits.max_entries)


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
        if end <= len(_NUMBER_LINES):
            texts += [begin + line for line in _NUMBER_LINES[seq:end]]
        else:
            texts += map((begin + b"%d\r\n").__mod__, range(seq, end))
        seq = end
    return texts
