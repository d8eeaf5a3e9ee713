"""LMOVEM and BLMOVEM: several items moved from one list to another. (Redis 8.10, documentation.)

What is logged is what was done: a pop of so many items and a push, which any Redis knows.

Tests: cases commands/test_commands_since_8_8.
"""

from typing import Final

from penstock.commands.lists.list_ends import list_at, listpack_size, notify_popped, push
from penstock.commands.lists.list_moves import deadline_of, read_end, wait
from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply

BLOCK: Final = "block:[(amount:<COUNT count|EXACTLY exact:integer> order:<OBO|BULK>)]"
COMPLEXITY: Final = "O(N) where N is the number of elements moved."


class Move:
    """A move of items. exactly: `count` items or none. one_by_one: each is pushed before the next is popped."""

    __slots__ = ("count", "destination", "exactly", "from_left", "one_by_one", "source", "to_left")

    def __init__(self, args: list[bytes], at: int) -> None:
        """`at`: where the words begin that follow the ends and the timeout."""
        self.source = args[1]
        self.destination = args[2]
        self.from_left = read_end(args[3])
        self.to_left = read_end(args[4])
        self.count = 1
        self.exactly = False
        self.one_by_one = True
        block = args[at:]
        if not block:
            return
        if len(block) != 3:
            raise refusals.syntax()
        amount, count, order = block[0].upper(), block[1], block[2].upper()
        if amount not in (b"COUNT", b"EXACTLY") or order not in (b"OBO", b"BULK"):
            raise refusals.syntax()
        self.count = arguments.count(count)
        self.exactly = amount == b"EXACTLY"
        self.one_by_one = order == b"OBO"

    def carried_out(self, ctx: Context) -> bytes | None:
        """Move the items; returns the reply, the items in their new order, or None if there are too few."""
        found = list_at(ctx, self.source)
        if found is None or (self.exactly and len(found) < self.count):
            return None
        target = list_at(ctx, self.destination)
        items = found.pop(self.from_left, self.count)
        count = len(items)
        if self.to_left if self.one_by_one else not self.from_left:
            items.reverse()
        pushed = items[::-1] if self.to_left else items  # one after the other
        push(ctx, self.destination, target, self.to_left, pushed, listpack_size(ctx))
        notify_popped(ctx, self.source, found, self.from_left, count)
        ctx.log(b"LPOP" if self.from_left else b"RPOP", self.source, b"%d" % count)
        ctx.log(b"LPUSH" if self.to_left else b"RPUSH", self.destination, *pushed)
        when_ms = ctx.db.expires.get(self.source)
        if self.source == self.destination and when_ms is not None and len(found) == count:
            ctx.log(b"PEXPIREAT", self.source, b"%d" % when_ms)  # the pop as logged empties the list, and removes it
        return reply.bulks(items)


@command(
    f"LMOVEM source:key destination:key wherefrom:<LEFT|RIGHT> whereto:<LEFT|RIGHT> {BLOCK}",
    "8.10.0 write denyoom | keys 1 RW access delete; 2 RW insert",
    "Moves items from an end of one list to an end of another, one by one or as they stand.",
    COMPLEXITY,
)
def lmovem(ctx: Context, args: list[bytes]) -> bytes:
    move = Move(args, 5)
    answer = move.carried_out(ctx)
    return reply.null_array(ctx.resp3) if answer is None else answer


@command(
    f"BLMOVEM source:key destination:key wherefrom:<LEFT|RIGHT> whereto:<LEFT|RIGHT> timeout:double {BLOCK}",
    "8.10.0 write denyoom blocking | keys 1 RW access delete; 2 RW insert",
    "Moves items from an end of one list to an end of another, waiting for one, or for exactly so many.",
    COMPLEXITY,
)
def blmovem(ctx: Context, args: list[bytes]) -> bytes:
    move = Move(args, 6)
    deadline_ms = deadline_of(ctx, args[5])
    answer = move.carried_out(ctx)
    if answer is None:
        return wait(ctx, [move.source], deadline_ms, reply.null_array(ctx.resp3))
    return answer
