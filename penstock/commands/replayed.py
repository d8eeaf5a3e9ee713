"""Short ways for the log's commonest lines; what does not fit takes the ordinary way, to the same state.

A plain XADD appends. A delivery's XCLAIM of many entries that follow one another is compared as text with the ids of
the stream, instead of being read id by id, and the entries become pending by slices.
"""

from typing import Final

from penstock.commands import words
from penstock.commands.context import Context
from penstock.commands.xgroup import new_consumer
from penstock.protocol import entries
from penstock.storage import ids
from penstock.storage.streams import Run, Stream

FEWEST_TO_APPEND: Final = 5  # XADD key id field value; a damaged line may have fewer words
FEWEST_WORDS: Final = 17  # of a request for which looking closely pays
_IDS_AT: Final = 5
_TAIL: Final = 8  # TIME t RETRYCOUNT n FORCE JUSTID LASTID id


def shortly(ctx: Context, request: list[bytes]) -> bool:
    """Carry a line out, while the log is replayed; False, and nothing done, where it must take the ordinary way."""
    if request[0] == b"XADD":
        return len(request) >= FEWEST_TO_APPEND and append(ctx, request)
    return len(request) >= FEWEST_WORDS and is_delivery(request) and deliver(ctx, request)


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
    if entry_id <= stream.last_id or engine.watchers or engine.notified or engine.waiters.by_key:
        return False
    fields = request[3:]
    stream.append(entry_id, entries.encode(ids.text(entry_id), fields), fields)
    ctx.dirty += 1
    return True


def is_delivery(request: list[bytes]) -> bool:
    """Whether a request has the form in which deliveries are logged (group_effects.log_claim), for the first time."""
    return (
        request[0] == b"XCLAIM"
        and request[4] == b"0"
        and request[-8] == b"TIME"
        and request[-6:-2] == [b"RETRYCOUNT", b"1", b"FORCE", b"JUSTID"]
        and request[-2] == b"LASTID"
    )


def deliver(ctx: Context, request: list[bytes]) -> bool:
    """Make the entries pending."""
    key = request[1]
    stream = ctx.db.values.get(key)
    group = stream.groups.get(request[2]) if isinstance(stream, Stream) else None
    if group is None or not isinstance(stream, Stream) or not words.is_integer(request[-7]):
        return False
    texts = request[_IDS_AT:-_TAIL]
    try:
        first, last, last_id = ids.parse(texts[0]), ids.parse(texts[-1]), ids.parse(request[-1])
    except ValueError:
        return False
    runs = stream.runs(first, last, len(texts) + 1)
    if b" ".join(texts) != _texts_of(runs):
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


def _texts_of(runs: list[Run]) -> bytes:
    """The ids of entries, with blanks between."""
    texts: list[bytes] = []
    for run in runs:
        segment = run.segment
        texts += map(
            b"%d-%d".__mod__, zip(segment.ms[run.start : run.stop], segment.seq[run.start : run.stop], strict=True)
        )
    return b" ".join(texts)
