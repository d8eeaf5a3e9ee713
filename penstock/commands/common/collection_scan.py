"""Scanning the parts of one value in steps: shared by HSCAN, SSCAN and ZSCAN.

A value that Redis keeps in its compact encoding is returned as a whole, whatever the cursor and COUNT are (Redis
8.6.3). A larger one is scanned in the order of its parts' hashes. The cursor is a position in this order, so the
server remembers nothing for a client between two calls.
"""

from collections.abc import Iterable

from penstock.commands.common.scan_cursor import PAGE, not_an_option, read_count, read_glob
from penstock.engine.context import Context
from penstock.engine.matching.globs import Glob
from penstock.protocol import reply
from penstock.storage.types.scan_order import HashOrder


class CollectionScan:
    """The arguments of one scan request: a cursor after the key, then options.

    only_names: HSCAN's NOVALUES, ZSCAN's NOSCORES (Valkey).
    """

    __slots__ = ("count", "cursor", "glob", "only_names")

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor
        self.count = PAGE
        self.glob: Glob | None = None
        self.only_names = False

    def matching(self, names: Iterable[bytes]) -> list[bytes]:
        """The names that match the pattern."""
        glob = self.glob
        return list(names) if glob is None else [name for name in names if glob.matches(name)]

    def step(self, order: HashOrder) -> tuple[list[bytes], int, HashOrder | None]:
        """The matching names of this step, the next cursor, and the order if it is to be kept: not after the last step.

        It is kept beyond the scan if names are picked from it by chance.
        """
        names_found, following = order.walk(self.cursor, self.count)
        is_kept = following != 0 or order.is_picked_from
        return self.matching(names_found), following, order if is_kept else None


def read_options(ctx: Context, args: list[bytes], cursor: int, bare: bytes | None = None) -> CollectionScan:
    """Read the options after the cursor in args[2], in any order; ReplyError with Redis's text.

    bare: the option for names without values, if the command has one.
    """
    scan = CollectionScan(cursor)
    at = 3
    while at < len(args):
        option = args[at].upper()
        if option == b"COUNT" and at + 1 < len(args):
            scan.count = read_count(args[at + 1])
            at += 1
        elif option == b"MATCH" and at + 1 < len(args):
            scan.glob = read_glob(args[at + 1])
            at += 1
        elif option == bare and not ctx.hides(option):
            scan.only_names = True
        else:
            raise not_an_option(ctx, option)
        at += 1
    return scan


def answer(following: int, parts: list[bytes]) -> bytes:
    return reply.array([reply.bulk(b"%d" % following), reply.bulks(parts)])
