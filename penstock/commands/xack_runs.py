"""XACKs that follow one another in a pipeline, of one group: what each acknowledges is looked up together."""

from penstock.commands.context import Context
from penstock.commands.effects import pack
from penstock.commands.table import together
from penstock.protocol import reply
from penstock.storage import ids
from penstock.storage.streams import Stream


@together("XACK")
def acknowledge_run(ctx: Context, requests: list[list[bytes]], start: int, answers: list[bytes]) -> int:
    """Answer the requests from `start` on that name one id each, in one group."""
    head = requests[start][:3]
    run: list[list[bytes]] = []
    for at in range(start, len(requests)):
        request = requests[at]
        if len(request) != 4 or request[:3] != head:
            break
        run.append(request)
    stream = ctx.value(head[1]) if len(run) > 1 else None
    group = stream.groups.get(head[2]) if isinstance(stream, Stream) else None
    if group is None:
        return 0
    try:
        wanted = ids.parse_all([request[3] for request in run])
    except ValueError:
        return 0
    gone = group.acknowledge_all(wanted)
    ctx.engine.statistics.hits += len(run)
    ctx.dirty += gone.count(1)
    if ctx.effects.log is not None and any(gone):
        lines = [pack(tuple(request)) for request, is_gone in zip(run, gone, strict=True) if is_gone]
        ctx.effects.add_units(ctx.db_index, lines)
    answers.extend([reply.ONE if is_gone else reply.ZERO for is_gone in gone])
    return len(run)
