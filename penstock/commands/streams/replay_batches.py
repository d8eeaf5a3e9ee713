"""The loader's functions for the most common lines of the log. Other lines are run one by one, with the same result.

XADDs without options to one stream, one after another, are appended together. The XCLAIM that logs a delivery of
consecutive entries is compared with the texts of the stream's ids; if they are equal, the entries become pending by
slices. XACKs in one group, one after another, are one look-up of all their ids. The plain handlers are the oracle in
tests/commands/test_replay_batches.py; what they count, these functions count.

Tests: law commands/test_replay_batches.
"""

from typing import Final

from penstock.engine import arguments
from penstock.engine.consumers import new_consumer
from penstock.engine.context import Context
from penstock.engine.table.command_table import replayed
from penstock.protocol import entries
from penstock.storage.streams import ids
from penstock.storage.streams.listpack_nodes import same_field_entries
from penstock.storage.streams.segment import id_texts_of
from penstock.storage.streams.stream import Stream

MIN_XADD_ARGUMENTS: Final = 5  # XADD key id field value; a damaged line may have fewer
MIN_BATCH: Final = 4  # with fewer lines or consecutive ids, a batch is not faster
MIN_XACK_ARGUMENTS: Final = 4  # XACK key group id
MIN_XCLAIM_ARGUMENTS: Final = 14  # of one id
_FIELDS_AT: Final = 3  # of an XADD
_IDS_AT: Final = 5  # of an XCLAIM
_TAIL: Final = 8  # TIME t RETRYCOUNT n FORCE JUSTID LASTID id


@replayed("XADD")
def add_lines(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """Replay XADDs to one stream, or a single one; returns how many requests were replayed."""
    if len(requests[start]) < MIN_XADD_ARGUMENTS:
        return 0
    return append_run(ctx, requests, start) or int(append(ctx, requests[start]))


def append(ctx: Context, request: list[bytes]) -> bool:
    """Replay one XADD without options; returns whether it was done.

    Only with an explicit id, to an existing stream that no client watches or waits for.
    """
    stream = ctx.db.values.get(request[1])
    if not isinstance(stream, Stream) or not len(request) & 1 or not request[2][:1].isdigit():
        return False
    try:
        entry_id = ids.parse(request[2])
    except ValueError:
        return False
    if entry_id <= stream.last_id or ctx.clients.follows_changes or ctx.key_events.letters or ctx.blocking.by_key:
        return False
    fields = request[_FIELDS_AT:]
    ms, seq = ids.halves(entry_id)
    stream.append(ms, seq, entries.encode(ids.text_of(ms, seq), fields), fields)
    ctx.dirty += 1
    return True


def append_run(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """As `append`, for consecutive XADDs to one stream; returns how many. The checks are done once for all of them."""
    key = requests[start][1]
    stream = ctx.db.values.get(key)
    if (
        not isinstance(stream, Stream)
        or stream.rewound
        or ctx.clients.follows_changes
        or ctx.key_events.letters
        or ctx.blocking.by_key
    ):
        return 0
    stop, count = start, len(requests)
    while stop < count:
        request = requests[stop]
        if len(request) < MIN_XADD_ARGUMENTS or request[0] != b"XADD" or request[1] != key or not len(request) & 1:
            break
        stop += 1
    if stop - start < MIN_BATCH:
        return 0
    run = requests[start:stop]
    try:
        columns = ids.parse_all([request[2] for request in run])
    except ValueError:
        return 0
    ms, seq = columns.ms.tolist(), columns.seq.tolist()
    ends = _ends_of_neighbours(ms, seq)
    if not ends or columns.id_at(0) <= stream.last_id:
        return 0
    at = 0
    for end in ends:
        same_fields = same_field_entries(run[at:end], _FIELDS_AT) if end - at >= MIN_BATCH else None
        if same_fields is None:
            for place in range(at, end):
                fields = run[place][_FIELDS_AT:]
                stream.append(ms[place], seq[place], entries.encode(ids.text_of(ms[place], seq[place]), fields), fields)
        else:
            encoded: list[bytes] = []
            for place in range(at, end):
                encoded.append(entries.encode(ids.text_of(ms[place], seq[place]), run[place], _FIELDS_AT))
            stream.append_run((ms[at], seq[at], end - at), encoded, same_fields, 0)
        at = end
    ctx.dirty += len(run)
    return len(run)


def _ends_of_neighbours(ms: list[int], seq: list[int]) -> list[int]:
    """The indexes at which runs of consecutive ids in one millisecond end; none if the ids do not ascend."""
    ends: list[int] = []
    last_ms, last_seq = ms[0], seq[0]
    for at in range(1, len(ms)):
        next_ms, next_seq = ms[at], seq[at]
        if next_ms != last_ms:
            if next_ms < last_ms:
                return []
            ends.append(at)
        elif next_seq != last_seq + 1:
            if next_seq <= last_seq:
                return []
            ends.append(at)
        last_ms, last_seq = next_ms, next_seq
    ends.append(len(ms))
    return ends


@replayed("XACK")
def acknowledge_run(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """Replay XACKs in one group together; returns how many. If an id is malformed, none of them is done."""
    head = requests[start][:3]
    texts: list[bytes] = []
    stop, count = start, len(requests)
    while stop < count and requests[stop][:3] == head:
        texts += requests[stop][3:]
        stop += 1
    if len(texts) < MIN_BATCH or min(map(len, requests[start:stop])) < MIN_XACK_ARGUMENTS:
        return 0
    stream = ctx.db.values.get(head[1])
    group = stream.groups.get(head[2]) if isinstance(stream, Stream) else None
    if group is None:
        return 0
    try:
        wanted = ids.parse_all(texts)
    except ValueError:
        return 0
    group.pel.acknowledge_all(wanted)
    ctx.statistics.hits += stop - start
    return stop - start


def _is_delivery(request: list[bytes]) -> bool:
    """Whether an XCLAIM has the form in which a first delivery is logged (group_effects.log_claim)."""
    return (
        request[4] == b"0"
        and request[-8] == b"TIME"
        and arguments.is_integer(request[-7])
        and request[-6:-2] == [b"RETRYCOUNT", b"1", b"FORCE", b"JUSTID"]
        and request[-2] == b"LASTID"
    )


@replayed("XCLAIM")
def deliver(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """Replay the XCLAIM of a delivery of consecutive entries; returns 1, or 0 if it is another one."""
    request = requests[start]
    if len(request) < MIN_XCLAIM_ARGUMENTS or not _is_delivery(request):
        return 0
    key = request[1]
    stream = ctx.db.values.get(key)
    group = stream.groups.get(request[2]) if isinstance(stream, Stream) else None
    if group is None or not isinstance(stream, Stream):
        return 0
    texts = request[_IDS_AT:-_TAIL]
    try:
        first, last, last_id = ids.parse(texts[0]), ids.parse(texts[-1]), ids.parse(request[-1])
    except ValueError:
        return 0
    runs = stream.runs(first, last, len(texts) + 1)
    if texts != id_texts_of(runs):
        return 0
    if last_id > group.last_id:
        group.last_id = last_id
    consumer = group.consumers.get(request[3])
    if consumer is None:
        consumer = new_consumer(ctx, key, group, request[3])
    time_ms = int(request[-7])
    group.pel.deliver(runs, consumer, time_ms if time_ms >= 0 else ctx.now_ms)
    consumer.seen_ms = consumer.active_ms = ctx.now_ms
    ctx.statistics.hits += 1
    return 1
