"""XADDs that follow one another in a pipeline: `XADD key * field value ...`, all to one stream.

What one XADD does that depends on nothing but the stream is done once for all of them. The plain way, one by one
(xadd.py), is the oracle beside which the tests run this one.
"""

from penstock.commands.context import Context
from penstock.commands.effects import pack
from penstock.commands.table import together
from penstock.commands.xadd import LARGEST_ENTRY
from penstock.protocol import reply
from penstock.storage.ids import HALF
from penstock.storage.streams import Stream


@together("XADD")
def add_run(ctx: Context, requests: list[list[bytes]], start: int, answers: list[bytes]) -> int:
    """Append the entries of the requests from `start` on that have no options, and say which ids they got."""
    head = requests[start][:3]
    if len(head) < 3 or head[2] != b"*":
        return 0
    key = head[1]
    stream = ctx.value(key)
    run = _alike(requests, start, head)
    if len(run) < 2 or not isinstance(stream, Stream) or stream.strays or ctx.is_awaited(key):
        return 0
    first_id = stream.next_id(ctx.now_ms)
    if first_id is None or (first_id & HALF) + len(run) > HALF:
        return 0
    ms, seq = first_id >> 64, first_id & HALF
    texts = [b"%d-%d" % (ms, number) for number in range(seq, seq + len(run))]
    packed = list(map(pack, map(tuple, run)))
    if sum(map(len, packed)) > LARGEST_ENTRY:
        return 0
    names = [b"$%d\r\n%b\r\n" % (len(text), text) for text in texts]
    stream.append_run(first_id, [b"*2\r\n%b%b" % both for both in zip(names, packed, strict=True)], run)
    ctx.dirty += len(run)
    ctx.touch(key)
    if ctx.effects.log is not None:
        begin = reply.bulk(head[0]) + reply.bulk(key)
        ctx.effects.add_units(ctx.db_index, [
            b"*%d\r\n%b%b%b" % (len(fields) + 3, begin, name, pairs[pairs.index(b"\n") + 1 :])
            for fields, name, pairs in zip(run, names, packed, strict=True)
        ])  # fmt: skip
    answers.extend(names)
    return len(run)


def _alike(requests: list[list[bytes]], start: int, head: list[bytes]) -> list[list[bytes]]:
    """The fields and values of the requests from `start` on that begin with these words and have whole pairs."""
    run: list[list[bytes]] = []
    for at in range(start, len(requests)):
        request = requests[at]
        if request[:3] != head or len(request) < 5 or not len(request) & 1:
            break
        run.append(request[3:])
    return run
