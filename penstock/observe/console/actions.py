"""Changes that the page can make, as requests that redis-cli would send. The page shows them before they are run."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from penstock.commands.policies.policy_arguments import GROUP_OPTIONS, STREAM_OPTIONS, PolicyOptions
from penstock.commands.streams.stream_arguments import REFERENCE_WORDS
from penstock.config import quoting
from penstock.observe.console import names
from penstock.observe.console.engine_client import EngineClient, Words
from penstock.observe.console.replies import RefusedByServer, checked, fields_of

Asked: TypeAlias = Mapping[str, Any]

MOST_IDS: Final = 100
MOST_OF_ALL: Final = 1000  # of all that match, a step
RELEASES: Final = ("SILENT", "FAIL", "FATAL")
DEAD_FIELDS: Final = (b"_stream", b"_group", b"_id", b"_deliveries", b"_consumer", b"_reason")
REFERENCES: Final = "REFERENCES"  # the form's name for those of REFERENCE_WORDS
# What changes the connection, which all pages of a session share, or is answered with several replies.
OF_THE_CONNECTION: Final = frozenset(
    b"ASKING AUTH CLIENT|CAPA CLIENT|NO-EVICT CLIENT|NO-TOUCH CLIENT|REPLY CLIENT|SETINFO CLIENT|SETNAME"
    b" CLIENT|TRACKING CLIENT|CACHING DISCARD EXEC HELLO MONITOR MULTI PSUBSCRIBE PSYNC PUNSUBSCRIBE QUIT READONLY"
    b" READWRITE REPLCONF RESET SELECT SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC UNSUBSCRIBE UNWATCH WATCH".split()
)


class BadAction(Exception):
    """The page asks for something that there is not, or without what is needed."""


def _policy_option(name: str, value: str, known: PolicyOptions) -> Words:
    """The words of an option of PENSTOCK.POLICY; two numbers are parted by spaces."""
    option = name.encode(errors="replace")
    if known is STREAM_OPTIONS and name == REFERENCES:
        if (word := value.encode(errors="replace")) not in REFERENCE_WORDS:
            raise BadAction("what happens to references is KEEPREF, DELREF or ACKED")
        return [word]
    following = known.words(option, [option, b"", b""], 0) - 1
    if following < 1:
        raise BadAction(f"{name} is no option")
    return [option, *(value.encode(errors="replace").split() if following > 1 else [names.of_token(value)])]


class Step(NamedTuple):
    """A step of an action on all that match: the requests that found the entries, how many, and the last one's id."""

    asked: list[Words] = []  # noqa: RUF012  # of a tuple, and never changed
    entries: int = 0
    after: str = ""  # empty at the end


class Action:
    """One action that was asked for, on a key."""

    def __init__(self, client: EngineClient, asked: Asked) -> None:
        """BadAction for an unknown one."""
        self._client = client
        self._asked = asked
        self.db = self._number("db", 0)
        self.step = Step()
        # entries that are added elsewhere, each by a request, before the last request removes them
        self._moved: list[bytes] = []
        self._key = b"" if asked.get("action") == "command" else self._bytes("key")
        kinds: dict[str, Callable[[], Awaitable[list[Words]]]] = {
            "claim": self._claim,
            "release": self._release,
            "acknowledge": self._acknowledge,
            "dead-letter": self._dead_letter,
            "redrive": self._redrive,
            "delete-consumer": self._delete_consumer,
            "policy": self._policy,
            "command": self._command,
        }
        name = asked.get("action")
        if not isinstance(name, str) or name not in kinds:
            raise BadAction("there is no such action")
        self._kind = kinds[name]

    async def requests(self) -> list[Words]:
        """The requests that carry it out. BadAction, RefusedByServer, Gone."""
        return await self._kind()

    async def run(self, requests: list[Words]) -> list[tuple[Words, Any]]:
        """Send them: those that were sent, each with its reply. RefusedByServer, Gone.

        An entry that could not be added elsewhere stays where it is. A transaction would remove it all the same: EXEC
        goes on behind a request that fails (no id is left, a right was taken away meanwhile).
        """
        adding = requests[: len(self._moved) or None]
        replies = await self._client.pipeline(adding, self.db)
        sent = list(zip(adding, replies, strict=True))
        added = [one for one, reply in zip(self._moved, replies, strict=False) if isinstance(reply, bytes)]
        if added:
            removing = [*requests[-1][: -len(self._moved)], *added]
            sent.append((removing, await self._client.ask(*removing, db=self.db)))
        return sent

    # -- parameters -----------------------------------------------------------------------------------------------

    def _text(self, name: str) -> str:
        value = self._asked.get(name, "")
        if not isinstance(value, str):
            raise BadAction(f"{name} is a text")
        return value

    def _bytes(self, name: str) -> bytes:
        value = names.of_token(self._text(name))
        if not value and name != "consumer":
            raise BadAction(f"{name} is missing")
        return value

    def _number(self, name: str, default: int) -> int:
        value = self._asked.get(name, default)
        if isinstance(value, str) and value.isdecimal() and len(value) < 16:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise BadAction(f"{name} is a whole number, 0 or more")
        return value

    async def _ids(self) -> list[bytes]:
        """The entries: those that are named, or the next ones of all that match a condition (`all`)."""
        if isinstance(self._asked.get("all"), dict):
            return await self._matching(self._asked["all"])
        ids = self._asked.get("ids")
        if not isinstance(ids, list) or not ids or len(ids) > MOST_IDS:
            raise BadAction(f"choose 1 to {MOST_IDS} entries")
        if not all(isinstance(one, str) and one.replace("-", "", 1).isdecimal() for one in ids):
            raise BadAction("an id is two numbers with a dash between them")
        return [one.encode() for one in ids]

    async def _matching(self, condition: Asked) -> list[bytes]:
        """The pending entries of a group, behind `after` up to `until`, by consumer and idle time. BadAction for none.

        In steps in the order of ids: what is delivered meanwhile is not met, and a step that failed can be repeated.
        """
        asked = {"after": "", "until": "", "consumer": "", "idle_ms": "0"} | dict(condition)
        if not all(isinstance(one, str) for one in asked.values()) or not asked["idle_ms"].isdecimal():
            raise BadAction("a condition has texts, and a number of ms")
        first = b"(" + names.of_token(asked["after"]) if asked["after"] else b"-"
        words = [b"XPENDING", self._key, self._bytes("group"), b"IDLE", asked["idle_ms"].encode(), first]
        words += [names.of_token(asked["until"]) or b"+", b"%d" % MOST_OF_ALL]
        words += [names.of_token(asked["consumer"])] if asked["consumer"] else []
        found = checked(await self._client.ask(*words, db=self.db))
        if not found:
            raise BadAction("no pending entry matches")
        self.step = Step([words], len(found), found[-1][0].decode() if len(found) == MOST_OF_ALL else "")
        return [one[0] for one in found]

    # -- actions --------------------------------------------------------------------------------------------------

    async def _claim(self) -> list[Words]:
        consumer = self._text("consumer")
        if not consumer:
            raise BadAction("name the consumer that is to have the entries")
        idle_ms = b"%d" % self._number("min_idle_ms", 0)
        start = [b"XCLAIM", self._key, self._bytes("group"), names.of_token(consumer), idle_ms]
        return [[*start, *await self._ids(), b"JUSTID"]]

    async def _release(self) -> list[Words]:
        mode = self._text("mode")
        if mode not in RELEASES:
            raise BadAction("the mode is SILENT, FAIL or FATAL")
        ids = await self._ids()
        words = [self._key, self._bytes("group"), mode.encode(), b"IDS", b"%d" % len(ids), *ids]
        delay_ms = self._number("delay_ms", 0)
        if delay_ms:
            return [[b"PENSTOCK.XNACK", *words, b"DELAY", b"%d" % delay_ms]]
        return [[b"XNACK", *words]]

    async def _acknowledge(self) -> list[Words]:
        return [[b"XACK", self._key, self._bytes("group"), *await self._ids()]]

    async def _dead_letter(self) -> list[Words]:
        """Into the stream that the group's policy names by XNACK FATAL, into any other by XADD and XACK."""
        group, ids, target = self._bytes("group"), await self._ids(), self._bytes("target")
        for one in checked(await self._client.ask(b"XINFO", b"GROUPS", self._key, db=self.db)):
            about = fields_of(one)
            policy = fields_of(about.get(b"penstock-policy", []))
            if about[b"name"] == group and policy.get(b"deadletter") == target:
                return [[b"XNACK", self._key, group, b"FATAL", b"IDS", b"%d" % len(ids), *ids]]
        await self._check_target(target)
        requests: list[Words] = []
        for entry_id in ids:
            fields = await self._fields(entry_id)
            held = checked(await self._client.ask(b"XPENDING", self._key, group, entry_id, entry_id, b"1", db=self.db))
            if not held:
                raise RefusedByServer(f"{entry_id.decode()} is not pending in this group.")
            _, consumer, _, deliveries = held[0]
            values = (self._key, group, entry_id, b"%d" % deliveries, consumer, b"moved by hand")
            reason_fields = [word for pair in zip(DEAD_FIELDS, values, strict=True) for word in pair]
            requests.append([b"XADD", target, b"*", *fields, *reason_fields])
        self._moved = ids
        return [*requests, [b"XACK", self._key, group, *ids]]

    async def _redrive(self) -> list[Words]:
        """Dead letters go back into the streams they came from, without the fields that say so."""
        ids = await self._ids()
        requests: list[Words] = []
        for entry_id in ids:
            fields = await self._fields(entry_id)
            pairs = list(zip(fields[::2], fields[1::2], strict=True))
            target = self._text("target")
            source = names.of_token(target) if target else dict(pairs).get(b"_stream")
            if not source:
                raise RefusedByServer(f"{entry_id.decode()} does not say which stream it came from.")
            await self._check_target(source)
            kept = [word for pair in pairs if pair[0] not in DEAD_FIELDS for word in pair]
            requests.append([b"XADD", source, b"*", *(kept or fields)])
        self._moved = ids
        return [*requests, [b"XDEL", self._key, *ids]]

    async def _check_target(self, key: bytes) -> None:
        """RefusedByServer for a key that holds no stream."""
        kind = checked(await self._client.ask(b"TYPE", key, db=self.db))
        if kind not in (b"stream", b"none"):
            raise RefusedByServer(f"{names.request_line([key])} holds a {kind.decode()}, no stream.")

    async def _fields(self, entry_id: bytes) -> list[bytes]:
        found = checked(await self._client.ask(b"XRANGE", self._key, entry_id, entry_id, db=self.db))
        if not found:
            raise RefusedByServer(f"{entry_id.decode()} is not in the stream any more.")
        fields: list[bytes] = found[0][1]
        return fields

    async def _delete_consumer(self) -> list[Words]:
        consumer = self._text("consumer")
        if not consumer:
            raise BadAction("consumer is missing")
        return [[b"XGROUP", b"DELCONSUMER", self._key, self._bytes("group"), names.of_token(consumer)]]

    async def _policy(self) -> list[Words]:
        """PENSTOCK.POLICY with what the form has values for; `reset` takes the policy away."""
        words = [b"PENSTOCK.POLICY", self._key]
        group = self._text("group")
        if group:
            words += [b"GROUP", names.of_token(group)]
        if self._asked.get("reset") is True:
            return [[*words, b"RESET"]]
        options = self._asked.get("options")
        if not isinstance(options, dict):
            raise BadAction("options is missing")
        chosen: Words = []
        for name, value in options.items():
            if not isinstance(value, str):
                raise BadAction(f"{name} is a text")
            if value:
                chosen += _policy_option(name, value, GROUP_OPTIONS if group else STREAM_OPTIONS)
        if not chosen:
            raise BadAction("give at least one option a value")
        return [[*words, *chosen]]

    async def _command(self) -> list[Words]:
        """A line that was typed, as redis-cli splits it; what could block in a transaction, where it does not."""
        words = quoting.split(self._text("line").encode())
        if not words:
            raise BadAction("a quote is not closed" if words is None else "type a command")
        (about,) = checked(await self._client.ask(b"COMMAND", b"INFO", words[0], db=self.db))
        name = words[0].upper() if about is None else about[0].upper()  # its own one, if it was renamed
        if name in OF_THE_CONNECTION or b"|".join([name, *words[1:2]]).upper() in OF_THE_CONNECTION:
            raise BadAction(f"{names.request_line(words[:2])} changes the connection: use redis-cli")
        if about is not None and b"blocking" in about[2]:
            return [[b"MULTI"], words, [b"EXEC"]]
        return [words]
