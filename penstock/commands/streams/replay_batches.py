"""Short ways for the log's commonest lines; what does not fit takes the ordinary way, to the same state.

Plain XADDs append, those to one stream that follow one another together. A delivery's XCLAIM of many entries that
follow one another is compared as text with the ids of the stream, instead of being read id by id, and the entries
become pending by slices. XACKs in one group that follow one another are one XACK of all their ids.
"""

from operator import lt
from typing import Final

from penstock.commands.streams.xack import xack
from penstock.engine import arguments
from penstock.engine.consumers import new_consumer
from penstock.engine.context import Context
from penstock.engine.table.command_table import replayed
from penstock.errors import ReplyError
from penstock.protocol import entries
from penstock.storage.streams import ids
from penstock.storage.streams.stream import SegmentRun, Stream

FEWEST_TO_APPEND: Final = 5  # XADD key id field value; a damaged line may have fewer words
FEWEST_TOGETHER: Final = 4  # lines, or ids that follow one another, for which working together pays
FEWEST_TO_ACKNOWLEDGE: Final = 4  # XACK key group id
FEWEST_WORDS: Final = 17  # of a request for which looking closely pays
_IDS_AT: Final = 5
_TAIL: Final = 8  # TIME t RETRYCOUNT n FORCE JUSTID LASTID id


@replayed("XADD")
def add_lines(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """XADDs to one stream; a single one where no others follow."""
    if len(requests[start]) < FEWEST_TO_APPEND:
        return 0
    return append_run(ctx, requests, start) or int(append(ctx, requests[start]))


@replayed("XCLAIM")
def claim_line(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """A delivery of many entries."""
    request = requests[start]
    return int(len(request) >= FEWEST_WORDS and is_delivery(request) and deliver(ctx, request))


def append(ctx: Context, request: list[bytes]) -> bool:
    """XADD of an explicit id to a stream that is there, without options, while nobody could notice."""
    stream = ctx.db.values.get(request[1])
    if not isinstance(stream, Stream) or not len(request) & 1 or not request[2][:1].isdigit():
        return False
    try:
        entry_id = ids.parse(request[2])
    except ValueError:
        return False
    engine = ctx.engine
    if entry_id <= stream.last_id or engine.watchers or engine.notified or engine.blocking.by_key:
        return False
    fields = request[3:]
    stream.append(entry_id, entries.encode(ids.text(entry_id), fields), fields)
    ctx.dirty += 1
    return True


def append_run(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """As `append`, for the XADDs to one stream. What is done once for all of them costs less than half a line."""
    key = requests[start][1]
    stream = ctx.db.values.get(key)
    engine = ctx.engine
    if not isinstance(stream, Stream) or stream.rewound or engine.watchers or engine.notified or engine.blocking.by_key:
        return 0
    stop, count = start, len(requests)
    while stop < count:
        request = requests[stop]
        if len(request) < FEWEST_TO_APPEND or request[0] != b"XADD" or request[1] != key or not len(request) & 1:
            break
        stop += 1
    if stop - start < FEWEST_TOGETHER:
        return 0
    run = requests[start:stop]
    try:
        columns = ids.parse_all([request[2] for request in run])
    except ValueError:
        return 0
    pairs = list(zip(columns.ms, columns.seq, strict=True))
    if columns.id_at(0) <= stream.last_id or not all(map(lt, pairs, pairs[1:])):
        return 0
    fields = [request[3:] for request in run]
    encoded = [entries.encode(b"%d-%d" % pair, words) for pair, words in zip(pairs, fields, strict=True)]
    at = 0
    for end in _ends_of_neighbours(columns):
        if end - at < FEWEST_TOGETHER:
            for place in range(at, end):
                stream.append(columns.id_at(place), encoded[place], fields[place])
        else:
            stream.append_run(columns.id_at(at), encoded[at:end], fields[at:end])
        at = end
    ctx.dirty += len(run)
    return len(run)


def _ends_of_neighbours(columns: ids.IdColumns) -> list[int]:
    """Where runs of ids end that follow one another within a millisecond."""
    ms, seq = columns.ms, columns.seq
    count = len(ms)
    if ms[0] == ms[-1] and seq[-1] - seq[0] == count - 1:
        return [count]
    return [at for at in range(1, count) if ms[at] != ms[at - 1] or seq[at] != seq[at - 1] + 1] + [count]


@replayed("XACK")
def acknowledge_run(ctx: Context, requests: list[list[bytes]], start: int) -> int:
    """XACKs in one group. An id that is none makes the handler refuse all of them before anything is done."""
    head = requests[start][:3]
    entry_ids: list[bytes] = []
    stop, count = start, len(requests)
    while stop < count and requests[stop][:3] == head:
        entry_ids += requests[stop][3:]
        stop += 1
    if len(entry_ids) < FEWEST_TOGETHER or min(map(len, requests[start:stop])) < FEWEST_TO_ACKNOWLEDGE:
        return 0
    try:
        xack(ctx, [*head, *entry_ids])
    except ReplyError:
        return 0
    return stop - start


def is_delivery(request: list[bytes]) -> bool:
    """Whether a request has the form in which deliveries are logged (group_effects.log_claim), for the first time."""
    return (
        request[4] == b"0"
        and request[-8] == b"TIME"
        and request[-6:-2] == [b"RETRYCOUNT", b"1", b"FORCE", b"JUSTID"]
        and request[-2] == b"LASTID"
    )


def deliver(ctx: Context, request: list[bytes]) -> bool:
    """Make the entries pending."""
    key = request[1]
    stream = ctx.db.values.get(key)
    group = stream.groups.get(request[2]) if isinstance(stream, Stream) else None
    if group is None or not isinstance(stream, Stream) or not arguments.is_integer(request[-7]):
        return False
    texts = request[_IDS_AT:-_TAIL]
    try:
        first, last, last_id = ids.parse(texts[0]), ids.parse(texts[-1]), ids.parse(request[-1])
    except ValueError:
        return False
    runs = stream.runs(first, last, len(texts) + 1)
    if texts != _texts_of(runs):
        return False
    if last_id > group.last_id:
        group.last_id = last_id
    consumer = group.consumers.get(request[3])
    if consumer is None:
        consumer = new_consumer(ctx, key, group, request[3])
    time_ms = int(request[-7])
    group.deliver(runs, consumer, time_ms if 0 <= time_ms <= ctx.now_ms else ctx.now_ms)
    consumer.seen_ms = consumer.active_ms = ctx.now_ms
    ctx.dirty += len(texts)
    return True


def _texts_of(runs: list[SegmentRun]) -> list[bytes]:
    """The ids of entries."""
    return [text for segment, start, stop in runs for text in segment.id_texts(start, stop)]
