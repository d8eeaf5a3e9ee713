"""Walking over the parts of one value, some at a time: what HSCAN and SSCAN share.

What Redis keeps compactly it answers whole, whatever the cursor and COUNT (Redis 8.6.3). A larger value is walked in
the order of its parts' hashes: a cursor is a place in it, and nothing is remembered for a client between two calls.
"""

from collections.abc import Collection, Iterable

from penstock.commands.common.scan_cursor import PAGE, read_count, read_glob
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.globs import Glob
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types.scan_order import HashOrder


class PartScan:
    """The words of one such request: a cursor behind the key, then options.

    only_names: HSCAN's NOVALUES, where that is allowed.
    """

    __slots__ = ("count", "cursor", "glob", "only_names")

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        self.count = PAGE
        self.glob: Glob | None = None
        self.only_names = False

    def fitting(self, names: Iterable[bytes]) -> list[bytes]:
        """The names that fit the pattern."""
        glob = self.glob
        return list(names) if glob is None else [name for name in names if glob.matches(name)]

    def step(self, walked: HashOrder | None, names: Collection[bytes]) -> tuple[list[bytes], int, HashOrder | None]:
        """The fitting names of this step of a walk, the next cursor, and the order to keep: none when it is through."""
        walked = HashOrder(names, 0) if walked is None else walked
        met, following = walked.walk(self.cursor, self.count)
        return self.fitting(met), following, walked if following else None


def read_options(ctx: Context, args: list[bytes], cursor: int, has_values: bool) -> PartScan:
    """What follows the cursor in args[2], in any order, else Redis's refusals."""
    scan = PartScan(cursor)
    at = 3
    while at < len(args):
        option = args[at].upper()
        if option == b"COUNT" and at + 1 < len(args):
            scan.count = read_count(args[at + 1])
            at += 1
        elif option == b"MATCH" and at + 1 < len(args):
            scan.glob = read_glob(args[at + 1])
            at += 1
        elif option == b"NOVALUES" and not ctx.hides(option):
            if not has_values:
                raise ReplyError(b"ERR NOVALUES option can only be used in HSCAN")
            scan.only_names = True
        else:
            raise refusals.syntax()
        at += 1
    return scan


def answer(following: int, parts: list[bytes]) -> bytes:
    return reply.array([reply.bulk(b"%d" % following), reply.bulks(parts)])
