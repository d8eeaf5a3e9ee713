"""PENSTOCK.XCOUNT: counts the entries of a range of ids, and says where they can be split, without reading them.

Tests: transcripts xcount; law commands/test_xcount.
"""

from typing import Final

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.reading.xrange import EVERYTHING
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.engine.versions import PENSTOCK_VERSION
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.segment import SegmentRun

OPTIONS_AT: Final = 4
WORDS: Final = (b"COUNT", b"EVERY")


@command(
    "PENSTOCK.XCOUNT key start end [COUNT count] [EVERY every]",
    f"{PENSTOCK_VERSION} readonly | keys 1 RO access",
    "Returns the number of entries in a range of ids, and the ids at even distances in it.",
    "O(S+M) with S the number of segments (of up to 128 entries) in the range, and M of ids returned.",
)
def penstock_xcount(ctx: Context, args: list[bytes]) -> bytes:
    """[entries, ids]: at most `count` entries are counted; `ids` are those of each `every`th, and of the last one.

    `start` and `end` as XRANGE takes them.
    """
    start = stream_arguments.range_start(args[2])
    end = stream_arguments.range_end(args[3])
    numbers = dict.fromkeys(WORDS, EVERYTHING)
    for at in range(OPTIONS_AT, len(args), 2):
        word = args[at].upper()
        if word not in numbers or at + 1 == len(args):
            raise refusals.syntax()
        numbers[word] = arguments.count(args[at + 1])
    stream = ctx.read_stream(args[1])
    runs = [] if stream is None else stream.runs(start, end, numbers[b"COUNT"])
    counted, places = _marks(runs, numbers[b"EVERY"])
    return reply.array([reply.integer(counted), reply.bulks(places)])


def _marks(runs: list[SegmentRun], every: int) -> tuple[int, list[bytes]]:
    """The number of entries, and the ids of each `every`th of them and of the last one."""
    counted, due = 0, every
    places: list[bytes] = []
    for segment, start, stop in runs:
        while due <= counted + stop - start:
            places.append(ids.text(segment.id_at(start + due - counted - 1)))
            due += every
        counted += stop - start
    if runs and due - every != counted:
        segment, _, stop = runs[-1]
        places.append(ids.text(segment.id_at(stop - 1)))
    return counted, places
