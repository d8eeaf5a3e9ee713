"""XACKs that follow one another in a pipeline, of one group: what each acknowledges is looked up together."""

from itertools import compress, repeat

from penstock.engine.context import Context
from penstock.engine.table.command_table import alike, together
from penstock.protocol import reply
from penstock.protocol.request_batch import Alike
from penstock.storage.streams import ids
from penstock.storage.streams.stream import Stream


@together("XACK")
def acknowledge_run(ctx: Context, requests: list[list[bytes]], start: int, answers: list[bytes]) -> int:
    """Answer the requests from `start` on that name one id each, in one group."""
    head = requests[start][:3]
    words: list[bytes] = []
    for at in range(start, len(requests)):
        request = requests[at]
        if len(request) != 4 or request[:3] != head:
            break
        words.append(request[3])
    return _acknowledge(ctx, head, words, answers) if len(words) > 1 else 0


@alike("XACK")
def acknowledge_alike(ctx: Context, requests: Alike, answers: list[bytes]) -> int:
    """As `acknowledge_run`, of requests that were not taken apart."""
    if requests.names or len(requests.head) != 3:
        return 0
    return _acknowledge(ctx, requests.head, requests.columns[0], answers)


def _acknowledge(ctx: Context, head: list[bytes], words: list[bytes], answers: list[bytes]) -> int:
    """Acknowledge an id for each word; how many, or 0, and nothing done."""
    stream = ctx.value(head[1])
    group = stream.groups.get(head[2]) if isinstance(stream, Stream) else None
    if group is None:
        return 0
    try:
        wanted = ids.parse_all(words)
    except ValueError:
        return 0
    gone = group.acknowledge_all(wanted)
    ctx.engine.statistics.hits += len(words)
    ctx.dirty += gone.count(1)
    if ctx.effects.log is not None and any(gone):
        begin = b"*4\r\n" + b"".join(map(reply.bulk, head))
        lines = list(map(b"".join, zip(repeat(begin), map(reply.bulk, compress(words, gone)))))
        ctx.effects.add_units(ctx.db_index, lines)
    answers.extend(map((reply.ZERO, reply.ONE).__getitem__, gone))
    return len(words)
