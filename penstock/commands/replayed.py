"""A short way for the log's longest lines: a delivery's XCLAIM of many entries that follow one another.

Its ids are compared as text with those of the stream, instead of being read one by one, and the entries become
pending by slices. What does not fit takes the ordinary way, to the same state.
"""

from typing import Final

from penstock.commands import words
from penstock.commands.context import Context
from penstock.commands.xgroup import new_consumer
from penstock.storage import ids
from penstock.storage.streams import Run, Stream

FEWEST_WORDS: Final = 17  # of a request for which looking closely pays
_IDS_AT: Final = 5
_TAIL: Final = 8  # TIME t RETRYCOUNT n FORCE JUSTID LASTID id


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
    """Carry a delivery out, while the log is replayed; False, and nothing done, where it is not that simple."""
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
