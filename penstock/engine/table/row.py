"""A row of the command table: everything that the engine knows of a command."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from penstock.engine.table import command_syntax as grammar
from penstock.engine.table import key_specs
from penstock.engine.table.key_place import KeyFinder, KeyPlace
from penstock.protocol.request_batch import REQUESTS, RequestBatch

TRANSACTIONS: Final = "transactions"
# Of commands that touch data only; EXEC does if its requests do, and generic commands if Redis calls them fast.
ORDINARY_GROUPS: Final = (
    "stream", "string", "list", "hash", "set", "sorted-set", "geo", "hyperloglog", "array", TRANSACTIONS,
)  # fmt: skip
Hider: TypeAlias = Callable[[list[bytes]], list[bytes]]
"""Returns a request with its secrets hidden, for MONITOR and SLOWLOG; the same list if it has no secrets."""
DatabaseFinder: TypeAlias = Callable[[list[bytes]], list[int]]
"""Returns the positions of the words of a request that name databases; a word that is no number is one, too."""

GUARD: Final = "guarded_by_"
RUNS_DIGEST: Final = "runs_digest"
RUNS_FUNCTION: Final = "runs_function"
RUNS_TEXT: Final = "runs_text"
FEEDS_MONITORS: Final = "feeds_monitors"
FEEDS_REPLICAS: Final = "feeds_replicas"
TRAITS: Final = frozenset({
    "feeds_monitors",  # its session is sent all requests from then on
    "feeds_replicas",  # its session is sent all data and all changes from then on
    "for_replicas",  # may be sent by a replica that is attached
    "goes_by_cursor",  # the tag of its cursor, which is no key, says which node of a cluster serves it
    "in_every_database",  # uses all databases, whichever is selected
    "guarded_by_debug",  # enable-debug-command must allow it
    "guarded_by_module",  # enable-module-command must allow it
    "may_replicate",  # does not change data, but a master may send it to its replicas
    "moves_slot_keys",  # is served at both ends of a slot that moves to another node of a cluster
    "never_queued",  # runs at once in MULTI
    "never_replicated",  # changes data, but is replicated as other commands
    "only_looks",  # looks at a key without using it: eviction does not count it
    "runs_digest",  # runs a script, named by its digest: counts by the script's flags, and MONITOR shows it first
    "runs_function",  # the same, named as a function of a library
    "runs_text",  # the same, given as its text
    "selects_database",  # the next requests of its session use the database that it names
    "spreads",  # its effect is sent to replicas, also where it changes no data
    "touches_nothing",  # is as quick and harmless as a command that touches data only
    "while_subscribed",  # may be sent by a RESP2 client that is subscribed
})  # fmt: skip
REQUEST: Final = "command [arg [arg ...]]"  # in the syntax of a command that asks about a request
MOST_WORDS: Final = 2**31  # of a request that may have any number: no protocol limit is above it


class Channels:
    """Which words of a request are channels: "1", or "1..-1", all from there on; with " patterns", patterns of them."""

    __slots__ = ("are_patterns", "first", "to_end")

    def __init__(self, text: str) -> None:
        places, _, kind = text.partition(" ")
        first, _, last = places.partition("..")
        self.first = int(first)
        self.to_end = last == "-1"
        self.are_patterns = kind == "patterns"


class Declaration(NamedTuple):
    """The declaration of a command, above its handler (`command`, command_table.py).

    keys: as key_specs.py has it, for COMMAND INFO. find_keys: finds them instead where `keys` does not say enough.
    channels: as `Channels` has it. hide: shows a request without its secrets. acl: categories beyond those that follow
    from flags and group. traits: words of TRAITS. history: versions, and what each changed. deprecated: since when, and
    what to use instead. arity: where the syntax does not say it. only_in: "valkey" if no Redis
    has it, "log" if only a log and a master may use it. databases: finds the databases that a request names, for the
    rules of users. A command that names some and has no keys does not use the selected one.
    """

    name: str
    syntax: str
    group: str
    since: str
    summary: str
    complexity: str
    flags: str = ""
    keys: str = ""
    find_keys: KeyFinder | None = None
    channels: str = ""
    hide: Hider | None = None
    acl: str = ""
    traits: str = ""
    tips: str = ""
    history: tuple[tuple[str, str], ...] = ()
    doc_flags: str = ""
    deprecated: tuple[str, str] | None = None
    arity: int = 0
    only_in: str = ""
    databases: DatabaseFinder | None = None
    hidden: frozenset[bytes] = frozenset()  # options and reply fields that clients must not see


class Row:
    """One command or subcommand, as it is declared; what runs it is added by Command (command_table.py).

    `name` is upper case, a subcommand's with a pipe: "XGROUP|CREATE". A container (XGROUP) has `subcommands`. What the
    engine asks is an attribute; `declared` has the rest.
    """

    __slots__ = (
        "arity", "asks_about", "batch_shape", "channels", "databases", "declared", "denyoom", "fast", "find_keys",
        "flags", "for_replicas", "goes_by_cursor", "group", "guarded_by", "has_keys", "hidden", "hide",
        "in_every_database", "is_container", "is_replicated", "key_specs", "keys_move", "label", "least_words",
        "loading", "most_words", "moves_slot_keys", "name", "no_auth", "no_multi", "only_key", "only_looks", "ordinary",
        "pubsub", "runs_script", "selects_database", "spreads", "subcommands", "syntax", "title", "transactional",
        "write",
    )  # fmt: skip

    def __init__(self, declared: Declaration, is_container: bool) -> None:
        name, group = declared.name, declared.group
        self.declared = declared
        self.name = name
        self.title = name.lower()  # "xgroup|create": in CLIENT LIST
        self.label = name.lower().encode()  # b"xgroup|create": in error texts, statistics, COMMAND
        self.syntax = declared.syntax
        self.group = group
        self.flags = frozenset(declared.flags.split())
        specs = key_specs.parse(declared.keys)
        self.key_specs = specs
        self.find_keys = declared.find_keys
        self.only_key = None if declared.find_keys is not None else key_specs.only_place(specs)
        self.keys_move = "movablekeys" in self.flags  # other words of the request say where they are
        self.channels = Channels(declared.channels) if declared.channels else None
        self.hide = declared.hide
        before, found, _ = declared.syntax.partition(REQUEST)
        self.asks_about = len(name.split("|")) + len(before.split()) if found else 0  # where a request begins; 0: none
        self.hidden = declared.hidden
        self.arity = declared.arity or grammar.arity(name, declared.syntax, declared.hidden)
        self.least_words = abs(self.arity)  # of a request
        self.most_words = self.arity if self.arity > 0 else MOST_WORDS
        is_searched = declared.find_keys is not None and self.most_words > 1
        self.has_keys = is_searched or any(spec.is_key for spec in specs)
        self.databases = declared.databases
        self.is_container = is_container  # nothing without a subcommand: XGROUP, not COMMAND
        self.subcommands: dict[bytes, Row] = {}  # by upper-case second word
        self.fast = "fast" in self.flags
        self.write = "write" in self.flags
        self.denyoom = "denyoom" in self.flags
        self.loading = "loading" in self.flags
        self.no_auth = "no_auth" in self.flags
        self.no_multi = "no_multi" in self.flags
        traits = declared.traits.split()
        assert TRAITS.issuperset(traits), f"{name} has a trait that nothing knows"
        self.for_replicas = "for_replicas" in traits
        # What a replica takes from its master: changes of the data, and what such a stream needs besides.
        self.is_replicated = "may_replicate" in traits or (self.write and "never_replicated" not in traits)
        self.goes_by_cursor = "goes_by_cursor" in traits
        self.only_looks = "only_looks" in traits
        self.pubsub = "while_subscribed" in traits
        scripts = [trait for trait in traits if trait in (RUNS_TEXT, RUNS_DIGEST, RUNS_FUNCTION)]
        self.runs_script = scripts[0] if scripts else ""  # how the request names it; "": it runs none
        self.in_every_database = "in_every_database" in traits
        self.selects_database = "selects_database" in traits
        self.spreads = "spreads" in traits
        self.moves_slot_keys = "moves_slot_keys" in traits
        self.transactional = "never_queued" in traits
        guards = [trait.removeprefix(GUARD) for trait in traits if trait.startswith(GUARD)]
        self.guarded_by = guards[0] if guards else ""  # enable-<this>-command must allow it
        touches_data = group in ORDINARY_GROUPS or (group == "generic" and self.fast)
        self.ordinary = not is_container and (touches_data or "touches_nothing" in traits)
        never_waits = self.ordinary and group != TRANSACTIONS and "blocking" not in self.flags
        self.batch_shape = REQUESTS if never_waits else 0  # which neighbours in a pipeline go together

    def fits(self, count: int) -> bool:
        """Whether a request of so many words has the right arity."""
        return self.least_words <= count <= self.most_words

    def key_places(self, request: list[bytes]) -> list[KeyPlace]:
        """Where the keys of a request with right arity are; none where its words do not say it (Redis 8.6.3)."""
        if self.find_keys is not None:
            return self.find_keys(request)
        return key_specs.places(self.key_specs, request, self.keys_move)

    def keys_of(self, request: list[bytes]) -> list[bytes]:
        """The keys of a request with right arity; none where they are not known."""
        return [request[place.position] for place in self.key_places(request)]

    def has_same_key(self, batch: RequestBatch) -> bool:
        """Whether the key of a command that has one is the same in all requests of a batch, by its prefix. O(1)."""
        return self.only_key is not None and self.only_key.position < len(batch.prefix)
