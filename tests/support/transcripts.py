r"""Dialogues written down (tests/transcripts): what clients send, and what each is sent, as it stands on the wire.

    > SET k v               a client sends a request
    +OK                     its reply in RESP2; several lines are several replies
    > HGETALL h
    ["f", "1"]
    resp3 {"f": "1"}        the same in RESP3, where it is another
    bob> BLPOP l 0          another client
    (waits)                 there is no reply yet
    > RPUSH l x
    1
    bob< ["l", "x"]         what a client is sent without having asked now
    # ...                   a comment
    > CLIENT KILL ID <id-of-bob>    the id of bob's connection
    since 8.8.0             a Redis of an older version is not asked
    in a cluster            the server is the only node of one, which owns all slots

Replies: `"x"` a bulk string (\n, \", \\, \xff inside), a bare number an integer, `+x` and `-x` a line and an error,
[..] an array, {..} a map, ~[..] a set, >[..] a push, `,1.5` a double, #t a boolean, (1 a big number, =txt:"x" a
verbatim string, null and null-array RESP2's two nulls, _ RESP3's. In them <now> is a time of the present in ms,
<now-s> in s, <idle> what has gone by since, <any> anything. Words of requests are quoted as in the shell; inside single
quotes, bytes are written as in Python (\xff).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.shell_words import split
from tests.support.wire import (
    Array,
    BigNumber,
    Boolean,
    Bulk,
    Double,
    Error,
    Integer,
    Map,
    Null,
    NullArray,
    NullBulk,
    Push,
    Set,
    Simple,
    Value,
    Verbatim,
)

FOLDER = Path(__file__).parents[1] / "transcripts"
WAITS = "(waits)"
SENT = re.compile(r"(\w*)> (.*)")
RECEIVED = re.compile(r"(\w+)<(?: (.*))?")
OTHERWISE = "resp3 "
SINCE = "since "
IN_CLUSTER = "in a cluster"
MARKS = {"<now>": r"\d{13}", "<now-s>": r"\d{10}", "<idle>": r"-?\d+", "<any>": r".*"}
_MARK = re.compile("|".join(MARKS))
_ID = re.compile(r"<id-of-(\w+)>")


def words_of(request: str) -> list[bytes]:
    """The words of a request as a transcript has it."""
    return [word.encode().decode("unicode_escape").encode("latin1") for word in split(request)]


@dataclass(slots=True)
class Reply:
    """A reply in the notation, in either protocol."""

    resp2: str
    resp3: str = ""  # empty: the same

    def of(self, resp: int) -> str:
        return self.resp3 or self.resp2 if resp == 3 else self.resp2


@dataclass(slots=True)
class Step:
    """Something that is sent or received by a client. `request` is empty where it only receives."""

    client: str
    request: str = ""
    replies: list[Reply] = field(default_factory=list)
    waits: bool = False
    before: list[str] = field(default_factory=list)  # comments and empty lines above it

    def words(self, id_of: Callable[[str], int]) -> list[bytes]:
        """The request, with the ids of the connections that it names."""
        request = _ID.sub(lambda found: str(id_of(found[1])), self.request)
        return words_of(request)


@dataclass(slots=True)
class Transcript:
    """One file. `since` is the version from which a Redis knows all its commands."""

    name: str
    steps: list[Step]
    since: tuple[int, ...] = (0, 0, 0)
    in_cluster: bool = False

    @property
    def clients(self) -> list[str]:
        return list(dict.fromkeys(step.client for step in self.steps))


def names() -> list[str]:
    """The transcripts of replies; what propagation.txt shows are lines of the log."""
    return sorted(path.stem for path in FOLDER.glob("*.txt") if path.stem != "propagation")


def read(name: str) -> Transcript:
    transcript = Transcript(name, [])
    before: list[str] = []
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith(SINCE):
            transcript.since = tuple(map(int, line.removeprefix(SINCE).split(".")))
            before.append(line)
        elif line == IN_CLUSTER:
            transcript.in_cluster = True
            before.append(line)
        elif not line or line.startswith("#"):
            before.append(line)
        elif sent := SENT.fullmatch(line):
            transcript.steps.append(Step(sent[1], sent[2], before=before))
            before = []
        elif received := RECEIVED.fullmatch(line):
            replies = [Reply(received[2])] if received[2] else []
            transcript.steps.append(Step(received[1], replies=replies, before=before))
            before = []
        elif line == WAITS:
            transcript.steps[-1].waits = True
        elif line.startswith(OTHERWISE):
            transcript.steps[-1].replies[-1].resp3 = line.removeprefix(OTHERWISE)
        else:
            transcript.steps[-1].replies.append(Reply(line))
    return transcript


def written(transcript: Transcript) -> str:
    """The file's text."""
    return "\n".join(_lines(transcript)) + "\n"


def _lines(transcript: Transcript) -> Iterator[str]:
    for step in transcript.steps:
        yield from step.before
        if step.request:
            yield f"{step.client}> {step.request}"
        if step.waits:
            yield WAITS
        for reply in step.replies:
            yield reply.resp2 if step.request else f"{step.client}< {reply.resp2}"
            if reply.resp3 and reply.resp3 != reply.resp2:
                yield OTHERWISE + reply.resp3


def shown(value: Value) -> str:
    """A reply in the notation."""
    match value:
        case Simple(text):
            return "+" + text.decode()
        case Error(text):
            return "-" + text.decode("latin1")
        case Integer(number):
            return str(number)
        case Bulk(text):
            return _quoted(text)
        case Verbatim(kind, text):
            return f"={kind.decode()}:{_quoted(text)}"
        case Double(text):
            return "," + text.decode()
        case BigNumber(text):
            return "(" + text.decode()
        case Boolean(is_true):
            return "#t" if is_true else "#f"
        case NullBulk():
            return "null"
        case NullArray():
            return "null-array"
        case Null():
            return "_"
        case Array(elements):
            return _list("", elements)
        case Set(elements):
            return _list("~", elements)
        case Push(elements):
            return _list(">", elements)
        case Map(pairs):
            return "{" + ", ".join(f"{shown(name)}: {shown(held)}" for name, held in pairs) + "}"
        case _:
            raise ValueError(f"no notation for {value}")


def _list(kind: str, elements: tuple[Value, ...]) -> str:
    return f"{kind}[{', '.join(map(shown, elements))}]"


def _quoted(text: bytes) -> str:
    escaped = text.decode("latin1").encode("unicode_escape").decode("ascii")
    return '"' + escaped.replace('"', '\\"') + '"'


def is_as_written(expected: str, seen: str, now_ms: int = 0) -> bool:
    """Whether a reply is as written down. now_ms: the time is known, and nothing has gone by since."""
    if now_ms:
        expected = expected.replace("<now>", str(now_ms)).replace("<now-s>", str(now_ms // 1000))
        expected = expected.replace("<idle>", "0")
    if "<" not in expected:
        return expected == seen
    pieces = _MARK.split(expected)
    marks = _MARK.findall(expected)
    pattern = re.escape(pieces[0]) + "".join(
        MARKS[mark] + re.escape(piece) for mark, piece in zip(marks, pieces[1:], strict=True)
    )
    return re.fullmatch(pattern, seen, re.DOTALL) is not None
