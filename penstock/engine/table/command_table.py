"""The command table: each command declared once, by a decorator above an untouched function.

    @command("XACK", "key group ID [ID ...]", group="stream", since="5.0.0", flags="write fast",
             keys="1 RW update", summary="...", complexity="...")
    def xack(ctx: Context, args: list[bytes]) -> bytes: ...

Everything else that is known of a command (arity, ACL categories, COMMAND, COMMAND DOCS, COMMAND GETKEYS, the
table in docs/commands.md, the tests' generated requests) is derived from that row. Nothing of it runs at
request time: the handler reads its own words by hand, in the order in which Redis checks them.
"""

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.engine.table import command_syntax as grammar

if TYPE_CHECKING:
    from penstock.engine.context import Context
    from penstock.protocol.request_batch import RequestBatch

Handler: TypeAlias = "Callable[[Context, list[bytes]], bytes]"

BatchHandler: TypeAlias = "Callable[[Context, RequestBatch, list[bytes]], int]"
"""Answers the first requests of a batch of several, as many as it can at once: their replies are appended, their number
is returned. 0, with nothing done, where even the first needs the plain handler. It refuses nobody, wakes nobody and
tells nobody: requests that do more than that are left to the plain handler, one by one, which is its oracle in a
test."""

ReplayHandler: TypeAlias = "Callable[[Context, list[list[bytes]], int], int]"
"""Carries out lines of the log from a place on, quicker than the handler and to the same state; how many, or 0, with
nothing done."""

ORDINARY_GROUPS: Final = ("stream", "string", "list", "hash", "set", "sorted-set")  # whose commands touch data only

DECLARED: Final[list["Row"]] = []  # filled while the family modules are imported, never after
BATCHED: Final[dict[str, BatchHandler]] = {}  # likewise, by name
REPLAYED: Final[dict[str, ReplayHandler]] = {}  # likewise


class Row:
    """One command or subcommand.

    `name` is upper case, a subcommand's with a pipe: "XGROUP|CREATE". `handler` gets the whole request: for
    XGROUP CREATE, args[0] is b"XGROUP" and args[1] b"CREATE", as typed. A container (XGROUP) has `subcommands`
    and a handler only if it may stand alone (COMMAND).
    """

    __slots__ = (
        "acl", "arity", "batch_handler", "complexity", "denyoom", "deprecated", "described", "doc_flags", "fast",
        "flags", "group", "handler", "hidden", "history", "keys", "label", "least_words", "loading", "most_words",
        "name", "no_auth", "no_multi", "ordinary", "pubsub", "replay_handler", "since", "subcommands", "summary",
        "syntax", "tips", "title", "transactional", "write",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        syntax: str,
        handler: "Handler | None",
        group: str,
        since: str,
        summary: str,
        complexity: str,
        flags: str,
        keys: str,
        acl: str,
        tips: str,
        history: tuple[tuple[str, str], ...],
        doc_flags: str,
        deprecated: tuple[str, str] | None,
        arity: int,
    ) -> None:
        self.name = name
        self.title = name.lower()  # "xgroup|create": in CLIENT LIST
        self.label = name.lower().encode()  # b"xgroup|create": in error texts, statistics, COMMAND
        self.syntax = syntax
        self.handler = handler
        self.group = group
        self.since = since
        self.summary = summary
        self.complexity = complexity
        self.flags = frozenset(flags.split())
        self.keys = keys
        self.acl = acl  # categories beyond those that follow from flags and group
        self.tips = tips
        self.history = history
        self.doc_flags = doc_flags
        self.deprecated = deprecated  # since when, and what to use instead
        self.arity = arity or grammar.arity(name, syntax)
        self.least_words = abs(self.arity)  # of a request
        self.most_words = self.arity if self.arity > 0 else sys.maxsize
        self.ordinary = handler is not None and (group in ORDINARY_GROUPS or name == "PING")
        self.batch_handler: BatchHandler | None = None
        self.replay_handler: ReplayHandler | None = None
        self.hidden: frozenset[bytes] = frozenset()  # options and reply fields that clients must not see
        self.subcommands: dict[bytes, Row] = {}  # by upper-case second word
        self.described: dict[str, bytes] = {}  # replies of COMMAND INFO and DOCS, made when first asked for
        self.write = "write" in self.flags
        self.fast = "fast" in self.flags
        self.denyoom = "denyoom" in self.flags
        self.loading = "loading" in self.flags
        self.no_auth = "no_auth" in self.flags
        self.no_multi = "no_multi" in self.flags
        self.pubsub = name in ("PING", "QUIT", "RESET") or name.endswith("SUBSCRIBE")  # for RESP2 subscribers too
        self.transactional = name in ("EXEC", "DISCARD", "MULTI", "WATCH", "QUIT", "RESET")  # never queued

    def as_known(
        self, hidden: frozenset[bytes], history: tuple[tuple[str, str], ...], subcommands: dict[bytes, "Row"]
    ) -> "Row":
        """The same command as a server knows it that has not all of it."""
        row = Row(
            self.name, self.syntax, self.handler, self.group, self.since, self.summary, self.complexity,
            " ".join(self.flags), self.keys, self.acl, self.tips, history, self.doc_flags, self.deprecated, self.arity,
        )  # fmt: skip
        row.batch_handler, row.replay_handler = self.batch_handler, self.replay_handler
        row.hidden, row.subcommands = hidden, subcommands
        return row

    def fits(self, count: int) -> bool:
        """Whether a request of so many words has the right arity."""
        return self.least_words <= count <= self.most_words


def command(
    name: str,
    syntax: str = "",
    *,
    group: str,
    since: str,
    summary: str,
    complexity: str = "O(1)",
    flags: str = "",
    keys: str = "",
    acl: str = "",
    tips: str = "",
    history: tuple[tuple[str, str], ...] = (),
    doc_flags: str = "",
    deprecated: tuple[str, str] | None = None,
    arity: int = 0,
) -> Callable[[Handler], Handler]:
    """Declare the function below as the command `name` ("XACK", "XGROUP|CREATE")."""

    def declare(handler: Handler) -> Handler:
        DECLARED.append(
            Row(
                name, syntax, handler, group, since, summary, complexity, flags, keys, acl, tips, history, doc_flags,
                deprecated, arity,
            )
        )  # fmt: skip
        return handler

    return declare


def batched(name: str) -> Callable[[BatchHandler], BatchHandler]:
    """The function below answers batches of the command `name`."""

    def declare(handler: BatchHandler) -> BatchHandler:
        BATCHED[name] = handler
        return handler

    return declare


def replayed(name: str) -> Callable[[ReplayHandler], ReplayHandler]:
    """The function below carries out the log's lines of the command `name`."""

    def declare(handler: ReplayHandler) -> ReplayHandler:
        REPLAYED[name] = handler
        return handler

    return declare


def container(
    name: str,
    *,
    group: str,
    since: str,
    summary: str,
    complexity: str = "Depends on subcommand.",
    acl: str = "",
) -> None:
    """Declare a command that is nothing without its subcommands (XGROUP)."""
    DECLARED.append(Row(name, "", None, group, since, summary, complexity, "", "", acl, "", (), "", None, -2))


def build(rows: Iterable[Row]) -> dict[bytes, Row]:
    """The table by upper-case name, subcommands hung below their containers."""
    table: dict[bytes, Row] = {}
    nested: list[Row] = []
    for row in rows:
        if "|" in row.name:
            nested.append(row)
        else:
            assert row.name.encode() not in table, f"{row.name} is declared twice"
            table[row.name.encode()] = row
        row.batch_handler = BATCHED.get(row.name)
        row.replay_handler = REPLAYED.get(row.name)
    for row in nested:
        parent, _, word = row.name.partition("|")
        table[parent.encode()].subcommands[word.encode()] = row
    return table
