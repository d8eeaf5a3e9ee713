"""A row of the command table: what is known of a command. Sessions, statistics and blocked requests keep rows."""

from typing import Final

from penstock.engine.table import command_syntax as grammar
from penstock.engine.table.key_place import KeyFinder
from penstock.protocol.request_batch import REQUESTS

TRANSACTIONS: Final = "transactions"
# Of commands that touch data only; EXEC does if what it runs does, and generic commands if Redis calls them fast.
ORDINARY_GROUPS: Final = (
    "stream", "string", "list", "hash", "set", "sorted-set", "geo", "hyperloglog", "array", TRANSACTIONS,
)  # fmt: skip
MOST_WORDS: Final = 2**31  # of a request that may have any number: no protocol limit is above it


class Row:
    """One command or subcommand, as it is declared; what runs it is added by Command (command_table.py).

    `name` is upper case, a subcommand's with a pipe: "XGROUP|CREATE". A container (XGROUP) has `subcommands`.
    """

    __slots__ = (
        "acl", "arity", "batch_shape", "complexity", "denyoom", "deprecated", "described", "doc_flags", "fast",
        "find_keys", "flags", "group", "hidden", "history", "is_container", "keys", "keys_move", "label", "least_words",
        "loading", "most_words", "name", "no_auth", "no_multi", "ordinary", "pubsub", "since", "subcommands", "summary",
        "syntax", "tips", "title", "transactional", "write",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        syntax: str,
        group: str,
        since: str,
        summary: str,
        complexity: str,
        flags: str,
        keys: str,
        find_keys: KeyFinder | None,
        acl: str,
        tips: str,
        history: tuple[tuple[str, str], ...],
        doc_flags: str,
        deprecated: tuple[str, str] | None,
        arity: int,
        is_container: bool,
    ) -> None:
        self.name = name
        self.title = name.lower()  # "xgroup|create": in CLIENT LIST
        self.label = name.lower().encode()  # b"xgroup|create": in error texts, statistics, COMMAND
        self.syntax = syntax
        self.group = group
        self.since = since
        self.summary = summary
        self.complexity = complexity
        self.flags = frozenset(flags.split())
        self.keys = keys
        self.find_keys = find_keys  # where keys, or what is done with them, depend on the request's options
        self.keys_move = "movablekeys" in self.flags  # other words of the request say where they are
        self.acl = acl  # categories beyond those that follow from flags and group
        self.tips = tips
        self.history = history
        self.doc_flags = doc_flags
        self.deprecated = deprecated  # since when, and what to use instead
        self.arity = arity or grammar.arity(name, syntax)
        self.least_words = abs(self.arity)  # of a request
        self.most_words = self.arity if self.arity > 0 else MOST_WORDS
        self.is_container = is_container  # nothing without a subcommand: XGROUP, not COMMAND
        self.fast = "fast" in self.flags
        touches_data = group in ORDINARY_GROUPS or (group == "generic" and self.fast)
        self.ordinary = not is_container and (touches_data or name == "PING")
        self.hidden: frozenset[bytes] = frozenset()  # options and reply fields that clients must not see
        self.subcommands: dict[bytes, Row] = {}  # by upper-case second word
        self.described: dict[str, bytes] = {}  # replies of COMMAND INFO and DOCS, made when first asked for
        self.write = "write" in self.flags
        never_waits = self.ordinary and group != TRANSACTIONS and "blocking" not in self.flags
        self.batch_shape = REQUESTS if never_waits else 0  # which neighbours in a pipeline go together
        self.denyoom = "denyoom" in self.flags
        self.loading = "loading" in self.flags
        self.no_auth = "no_auth" in self.flags
        self.no_multi = "no_multi" in self.flags
        self.pubsub = name in ("PING", "QUIT", "RESET") or name.endswith("SUBSCRIBE")  # for RESP2 subscribers too
        self.transactional = name in ("EXEC", "DISCARD", "MULTI", "WATCH", "QUIT", "RESET")  # never queued

    def fits(self, count: int) -> bool:
        """Whether a request of so many words has the right arity."""
        return self.least_words <= count <= self.most_words
