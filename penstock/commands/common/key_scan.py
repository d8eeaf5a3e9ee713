"""Shared by SCAN and CLUSTERSCAN: their options, and which of the keys that a step meets are shown."""

from penstock.commands.common.scan_cursor import PAGE, not_an_option, read_count, read_glob
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.matching.globs import Glob
from penstock.engine.table.client_compat import VALKEY_TYPES
from penstock.errors import ReplyError
from penstock.storage.keyspace import Value, type_name


class KeyScan:
    """The options of one request. pattern, kind: a type's name; None if they are not given."""

    __slots__ = ("_glob", "count", "kind", "pattern")

    def __init__(self) -> None:
        self.count = PAGE
        self.kind: bytes | None = None
        self.pattern: bytes | None = None
        self._glob: Glob | None = None

    def read(self, ctx: Context, option: bytes, args: list[bytes], at: int) -> None:
        """Take an option and the word behind it; ReplyError if it is none, or has no word."""
        if option == b"COUNT" and at + 1 < len(args):
            self.count = read_count(args[at + 1])
        elif option == b"MATCH" and at + 1 < len(args):
            self.pattern = args[at + 1]
            self._glob = read_glob(args[at + 1])
        elif option == b"TYPE" and at + 1 < len(args):
            self.kind = args[at + 1].lower()
            if ctx.compatibility.is_valkey and self.kind not in VALKEY_TYPES:
                raise ReplyError(b"ERR unknown type name '%b'" % refusals.c_string(args[at + 1]))
        else:
            raise not_an_option(ctx, option)

    def chosen(self, ctx: Context, keys: list[bytes]) -> list[bytes]:
        """Those of the keys that match and live; those that have expired are removed.  O(keys)."""
        glob, kind = self._glob, self.kind
        if glob is not None:
            keys = [key for key in keys if glob.matches(key)]
        if kind is not None or ctx.db.expires:
            met = [(key, value_met(ctx, key)) for key in keys]
            keys = [key for key, value in met if value is not None and (kind is None or type_name(value) == kind)]
        return keys


def value_met(ctx: Context, key: bytes) -> Value | None:
    """The live value of a key that the request has not named; the key is removed if it has expired.

    In a transaction or a script `lazyexpire-nested-arbitrary-keys no` forbids that.
    """
    is_overdue = ctx.db.expires.get(key, ctx.now_ms) < ctx.now_ms
    if is_overdue and not ctx.waits and not ctx.settings.yes("lazyexpire-nested-arbitrary-keys"):
        return None
    return ctx.look(key)
