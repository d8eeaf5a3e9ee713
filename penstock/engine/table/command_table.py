"""The command table: each command declared once, by a decorator above an untouched function.

    @command("XACK key group ID [ID ...]", "5.0.0 write fast | keys 1 RW update", "Acknowledges ...", "O(1) ...")
    def xack(ctx: Context, args: list[bytes]) -> bytes: ...

Everything else that is known of a command (arity, ACL categories, COMMAND, COMMAND DOCS, COMMAND GETKEYS, the
table in docs/commands.md, the tests' generated requests) is derived from that row. Nothing of it runs at
request time: the handler reads its own words by hand, in the order in which Redis checks them.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from penstock.engine.context import Context
from penstock.engine.table.key_place import KeyFinder
from penstock.engine.table.row import DatabaseFinder, Declaration, Hider, Row
from penstock.protocol.request_batch import RequestBatch

Handler: TypeAlias = Callable[[Context, list[bytes]], bytes]

BatchHandler: TypeAlias = Callable[[Context, RequestBatch, list[bytes]], int]
"""Answers the first requests of a batch of several, as many as it can at once: their replies are appended, their number
is returned. 0, with nothing done, where even the first needs the plain handler. It refuses no request, wakes no client
and sends no event: requests that do more are left to the plain handler, one by one, which is its oracle in a
test."""

ReplayHandler: TypeAlias = Callable[[Context, list[list[bytes]], int], int]
"""Carries out lines of the log from a place on, quicker than the handler and to the same state; how many, or 0, with
nothing done."""

GROUPS: Final = {  # of the commands in a folder of commands/, where the group has another name than the folder
    "acl": "server", "arrays": "array", "hashes": "hash", "keys": "generic", "lists": "list", "policies": "stream",
    "replication": "server", "sets": "set", "sorted_sets": "sorted-set", "streams": "stream", "strings": "string",
}  # fmt: skip
FACTS: Final = frozenset({"acl", "arity", "channels", "doc_flags", "group", "keys", "only_in", "tips", "traits"})
REPLY_BYTES: Final = 1 << 18  # of requests that run together: then the caller looks whether the client keeps up

DECLARED: Final[list["Command"]] = []  # filled while the family modules are imported, never after
BATCHED: Final[dict[str, tuple[BatchHandler, int]]] = {}  # likewise, by name
REPLAYED: Final[dict[str, ReplayHandler]] = {}  # likewise


class Command(Row):
    """A row with the functions that run it.

    `handler` gets the whole request: for XGROUP CREATE, args[0] is b"XGROUP" and args[1] b"CREATE", as typed. A
    container has none, unless it may stand alone (COMMAND).
    """

    __slots__ = ("batch_handler", "handler", "replay_handler")

    def __init__(self, declared: Declaration, handler: Handler | None) -> None:
        super().__init__(declared, handler is None)
        self.handler = handler
        self.batch_handler: BatchHandler | None = None
        self.replay_handler: ReplayHandler | None = None

    def as_known(self, declared: Declaration, subcommands: dict[bytes, Row]) -> "Command":
        """The same command with another declaration: a server's that has not all of it."""
        row = Command(declared, self.handler)
        row.batch_handler, row.replay_handler = self.batch_handler, self.replay_handler
        row.batch_shape = self.batch_shape
        row.subcommands = subcommands
        return row


Table: TypeAlias = dict[bytes, Command]  # by upper-case name


def command_of(row: Row) -> Command:
    """The row, to be run. Every row that a server has is a Command; whatever only keeps rows need not know it."""
    assert isinstance(row, Command), "the table is made of commands"
    return row


def command(
    usage: str,
    facts: str,
    summary: str,
    complexity: str = "O(1)",
    *,
    find_keys: KeyFinder | None = None,
    hide: Hider | None = None,
    history: tuple[tuple[str, str], ...] = (),
    deprecated: tuple[str, str] | None = None,
    databases: DatabaseFinder | None = None,
) -> Callable[[Handler], Handler]:
    """Declare the function below as a command. The words: see `Declaration`.

    usage: the name ("XACK", "XGROUP|CREATE") and the syntax. facts: since when, the flags, and behind each " | "
    another word of `Declaration` with its value. Without `group` it has the one of its module's folder.
    """
    name, _, syntax = usage.partition(" ")
    first, *others = facts.split(" | ")
    since, _, flags = first.partition(" ")
    given = {word: value for word, _, value in [other.partition(" ") for other in others]}
    group = given.get("group", "")
    declared = Declaration(
        name, syntax, group, since, summary, complexity, flags, given.get("keys", ""), find_keys,
        given.get("channels", ""), hide, given.get("acl", ""), given.get("traits", ""), given.get("tips", ""),
        history, given.get("doc_flags", ""), deprecated, int(given.get("arity", 0)), given.get("only_in", ""),
        databases,
    )  # fmt: skip
    assert FACTS.issuperset(given), f"{name}: {facts}"

    def declare(handler: Handler) -> Handler:
        DECLARED.append(Command(declared if group else declared._replace(group=_group_of(handler)), handler))
        return handler

    return declare


def _group_of(handler: Handler) -> str:
    folder = handler.__module__.split(".")[2]  # penstock.commands.FOLDER.MODULE
    return GROUPS.get(folder, folder)


def batched(name: str, shape: int) -> Callable[[BatchHandler], BatchHandler]:
    """The function below answers batches of the command `name`, which may have this shape, too (request_batch.py)."""

    def declare(handler: BatchHandler) -> BatchHandler:
        BATCHED[name] = handler, shape
        return handler

    return declare


def replayed(name: str) -> Callable[[ReplayHandler], ReplayHandler]:
    """The function below carries out the log's lines of the command `name`."""

    def declare(handler: ReplayHandler) -> ReplayHandler:
        REPLAYED[name] = handler
        return handler

    return declare


def container(name: str, *, group: str, since: str, summary: str, only_in: str = "") -> None:
    """Declare a command that is nothing without its subcommands (XGROUP)."""
    declared = Declaration(name, "", group, since, summary, "Depends on subcommand.", arity=-2, only_in=only_in)
    DECLARED.append(Command(declared, None))


def build(rows: Iterable[Command]) -> dict[bytes, Command]:
    """The table by upper-case name, subcommands hung below their containers."""
    table: dict[bytes, Command] = {}
    nested: list[Command] = []
    for row in rows:
        if "|" in row.name:
            nested.append(row)
        else:
            assert row.name.encode() not in table, f"{row.name} is declared twice"
            table[row.name.encode()] = row
        row.batch_handler, shape = BATCHED.get(row.name, (None, 0))
        row.batch_shape |= shape
        row.replay_handler = REPLAYED.get(row.name)
    for row in nested:
        parent, _, word = row.name.partition("|")
        table[parent.encode()].subcommands[word.encode()] = row
    return table
