"""A batch of XADDs: `XADD key [IDMP producer id] [MAXLEN ~ length] * field value ...`, `XADD key id field value ...`.

Their words are equal but for the values, the id, and IDMP's two. Work that depends only on the stream is done once for
all of them, the rest by operations on lists; so are the stream's policies. The tests compare this with xadd.py, which
runs the requests one by one.

Tests: law commands/test_batches, policies/test_policy_batches.
"""

from typing import Final

from penstock.commands.streams.changing.xadd import LARGEST_ENTRY
from penstock.commands.streams.stream_arguments import TrimArguments
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.table.command_table import batched
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.protocol.request_batch import COLUMNS, OWN, RequestBatch, bytes_of
from penstock.storage.streams.idempotence import Producers
from penstock.storage.streams.ids import HALF, IdRun, StreamId, runs_above
from penstock.storage.streams.listpack_nodes import SameFieldEntries
from penstock.storage.streams.stream import Stream
from penstock.storage.streams.trim import KEEP_REFERENCES, Trim

_NUMBER_LINES: Final = [b"%d\r\n" % number for number in range(1000)]  # the usual sequence numbers


@batched("XADD", COLUMNS | OWN)
def add_batch(ctx: Context, batch: RequestBatch, replies: list[bytes]) -> int:
    """Append the entries of a batch and reply their ids; returns how many requests were run."""
    if not batch.names:
        return 0
    head = batch.prefix
    if batch.middle:  # IDMP
        if ctx.hides(b"IDMP") or not ctx.effects.compat.idempotence:
            return 0
        head = [*head[:2], *batch.middle]
    stream = ctx.value(head[1])
    if not isinstance(stream, Stream) or stream.rewound or ctx.is_awaited(head[1]):
        return 0
    if len(head) == 3 and head[2] == b"*":
        return _append(ctx, stream, batch, replies, None)
    if stream.policies is not None:  # they may remove old entries between two requests, or what a trim has left
        return 0
    if _has_ids(batch):
        return _append(ctx, stream, batch, replies, None)
    trim = _trim_of(stream, head)
    if trim is None:
        return 0
    if batch.count >= trim.threshold:
        if trim.threshold < 3:
            return 0
        batch = batch.part(0, trim.threshold - 1)
    return _append(ctx, stream, batch, replies, trim)


def _append(ctx: Context, stream: Stream, batch: RequestBatch, replies: list[bytes], trim: Trim | None) -> int:
    """Append one entry for each request; returns how many, or 0 if nothing was done.

    With a trim, there must be fewer entries than the length that it leaves (see Trim.lengths).
    """
    key, names, columns, tails = batch.prefix[1], batch.names, batch.columns, batch.tails()
    if bytes_of(tails) > LARGEST_ENTRY:
        return 0
    runs = _new_ids(ctx, stream, batch)
    if not runs:
        return 0
    texts = _id_replies(batch, runs)
    count = len(texts)
    if count < batch.count:
        tails, columns = tails[:count], [column[:count] for column in columns]
    opening, pairs = b"*2\r\n", b"*%d\r\n" % (2 * len(names))
    entries = [b"%b%b%b%b" % (opening, texts[at], pairs, tail) for at, tail in enumerate(tails)]
    lengths = [] if trim is None else trim.lengths(stream.nodes, stream.length, count)
    fields, added = SameFieldEntries(names, columns), 0
    for run in runs:
        stream.append_run(run, entries, fields, added)
        added += run[2]
    if trim is not None:
        stream.trim(Trim(True, lengths[-1], trim.approximate, 0, trim.references), [])
    ctx.dirty += count
    ctx.touch(key)
    if ctx.effects.log is not None:
        begins = _line_begins(batch, lengths)
        lines = [b"%b%b%b" % (begins[at], texts[at], tail) for at, tail in enumerate(tails)]
        ctx.effects.add_units(ctx.db_index, lines)
    if stream.policies is not None:
        settling.apply_policies(ctx, key, stream)
    replies.extend(texts)
    return count


def _new_ids(ctx: Context, stream: Stream, batch: RequestBatch) -> list[IdRun]:
    """The ids of the entries, up to one that xadd.py must look at. IDMP's words are recorded for as many."""
    if _has_ids(batch):
        return runs_above(batch.own[0], stream.last_ms, stream.last_seq)
    ms, seq = stream.next_id(ctx.now_ms)
    count = batch.count
    if ms < 0 or seq + count > HALF:
        return []
    if batch.middle:
        stream.producers.sweep(ctx.now_ms)
        count = _record_new(stream.producers, batch, ms << 64 | seq)
    return [(ms, seq, count)] if count else []


def _has_ids(batch: RequestBatch) -> bool:
    """Whether each of its requests has an id."""
    return bool(batch.own) and not batch.middle


def _record_new(producers: Producers, batch: RequestBatch, first_id: StreamId) -> int:
    """Record IDMP's words for entries from an id on; returns how many, up to the first that xadd.py must look at.

    That is a duplicate of another entry, or has an empty word.
    """
    pids, iids = batch.own
    for at, pid in enumerate(pids):
        iid = iids[at]
        if not pid or not iid or producers.find(pid, iid) is not None:
            return at
        producers.record(pid, iid, first_id + at)
    return len(pids)


def _line_begins(batch: RequestBatch, lengths: list[int]) -> list[bytes]:
    """For each request what its line of the log has before the id. lengths: what its trim leaves, if it has one."""
    head = batch.prefix if batch.middle else batch.prefix[:2]
    begins = [reply.array_header(batch.width) + reply.words(head)] * batch.count
    if batch.middle:
        pids, iids = batch.own
        begins = [begins[at] + reply.bulk(pid) + reply.bulk(iids[at]) for at, pid in enumerate(pids)]
    if lengths:
        exact = reply.bulk(batch.middle[0] if batch.middle else batch.prefix[2]) + b"$1\r\n=\r\n"
        begins = [begins[at] + exact + reply.bulk(b"%d" % length) for at, length in enumerate(lengths)]
    return begins


def _trim_of(stream: Stream, head: list[bytes]) -> Trim | None:
    """The trim of `XADD key MAXLEN ~ length *`; None if the words have another form."""
    if len(head) != 6 or head[2].upper() != b"MAXLEN" or head[3] != b"~":
        return None
    trim = TrimArguments()
    try:
        trim.read(head, 2)
    except ReplyError:
        return None
    return trim.trim(KEEP_REFERENCES, stream.limits.max_entries)


def _id_replies(batch: RequestBatch, runs: list[IdRun]) -> list[bytes]:
    """The ids of the entries, as bulk strings. runs: the same ids."""
    if not _has_ids(batch):
        return _texts_of_run(runs[0])
    count = 0
    for run in runs:
        count += run[2]
    return [reply.bulk(batch.own[0][at]) for at in range(count)]


def _texts_of_run(run: IdRun) -> list[bytes]:
    """The ids of a run, as bulk strings.

    >>> _texts_of_run((5, 9, 2))
    [b'$3\\r\\n5-9\\r\\n', b'$4\\r\\n5-10\\r\\n']
    """
    texts: list[bytes] = []
    ms, seq, count = run
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
