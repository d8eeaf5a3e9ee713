"""Two ways that must come to the same: the shortest history after which they do not, and what differs first.

A law says by a function how a history is played both ways; `assert_same` plays it, makes it shorter while it still
fails in the same way, and fails with the requests that are left, the one whose reply differs, and both sides.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final, TypeVar

from penstock.protocol.log_reader import whole_requests
from tests.support import wire
from tests.support.first_difference import lines
from tests.support.shrinking import without

T = TypeVar("T")

TRIES: Final = 400
SHOWN: Final = 30  # of the fewest requests, which all are needed
LONGEST_WORD: Final = 200
BEFORE: Final = 11  # of requests that could not be made fewer: the one that differs, and ten before it


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs first.

    kind: `reply`, `state`, `log` or the like: a shorter history must differ in the same. of: a request or a key.
    count: so many steps of the history had been taken. names: of the two, where they are not the law's two ways.
    """

    kind: str
    expected: object
    found: object
    count: int
    of: str = ""
    names: tuple[str, str] | None = None


def assert_same(
    history: Sequence[T],
    compare: Callable[[list[T]], Difference | None],
    names: tuple[str, str] = ("one by one", "together"),
    shown: Callable[[T], str] | None = None,
    title: str = "",
) -> None:
    """Fail with the shortest history found that differs.

    compare: plays a history both ways. names: of what is expected, and of what is judged. shown: a step of the history,
    as one line; without it, a step is a request. title: what else a reader of the failure must know.
    """
    __tracebackhide__ = True
    found, error = _played(compare, list(history))
    if found is None:
        return
    kind = found.kind

    def differs(fewer: list[T]) -> bool:
        other, _ = _played(compare, fewer)
        return other is not None and other.kind == kind

    steps, most = list(history[: found.count]), BEFORE
    if differs(steps):
        steps, most = without(steps, differs, TRIES), SHOWN
        found, error = _played(compare, steps)
        assert found is not None, "what was shown once is shown again"
    head = f"the {found.kind}{_of(found)} differs after these requests (shortened from {len(history)}):"
    told = listed(map(shown or text_of, steps), most)
    report = "\n".join([head, *told, *lines(found.expected, found.found, found.names or names)])
    raise AssertionError(f"{title}: {report}" if title else report) from error


def _played(
    compare: Callable[[list[T]], Difference | None], history: list[T]
) -> tuple[Difference | None, Exception | None]:
    """What differs; an exception, of whatever is played, is a difference of its own kind."""
    try:
        return compare(history), None
    except Exception as error:  # of any kind: it is shown with the requests that lead to it
        return Difference(type(error).__name__, "no error", str(error), len(history)), error


def _of(found: Difference) -> str:
    """What it is a reply to, or a state of."""
    return f" to {found.of}" if found.kind == "reply" and found.of else f" of {found.of}" if found.of else ""


def listed(steps: Iterable[str], most: int = BEFORE) -> list[str]:
    """The last steps, a line each; equal ones that follow each other stand on one line."""
    runs = [(step, sum(1 for _ in same)) for step, same in groupby(steps)]
    told = [f"  > {step}" + (f"   ({times} times)" if times > 1 else "") for step, times in runs]
    left_out = len(told) - most
    return [f"  ({left_out} more before)", *told[-most:]] if left_out > 0 else told


def text_of(request: object) -> str:
    """A request as one line, of words that are text or bytes."""
    assert isinstance(request, Sequence), "a request has words"
    return " ".join(map(quoted, request))


def quoted(word: str | bytes) -> str:
    text = word.decode("latin-1") if isinstance(word, bytes) else word
    if len(text) > LONGEST_WORD:
        return f"{text[:60]!r}...({len(text)} bytes)"
    return text if text and text.isprintable() and not set(text) & set(" \"'\\") else repr(text)


def assert_equal(expected: object, found: object, names: tuple[str, str]) -> None:
    """Fail with the first part that differs. names: of the two."""
    __tracebackhide__ = True
    if expected != found:
        raise AssertionError("\n".join(["the two differ", *lines(expected, found, names)]))


@contextmanager
def told_on_failure(steps: Sequence[object]) -> Iterator[None]:
    """Add the last steps to an assertion that fails within: requests, or what was noted of each."""
    try:
        yield
    except AssertionError as failure:
        texts = [step if isinstance(step, str) else text_of(step) for step in steps]
        failure.add_note("\n".join(["the last requests were", *listed(texts)]))
        raise


# -- what is compared -------------------------------------------------------------------------------------------------


def replies_differ(
    requests: Sequence[Sequence[bytes]], expected: list[bytes], found: bytes, count: int
) -> Difference | None:
    """The first reply that differs, and whose it is.

    expected: the reply to each of the requests, and perhaps more behind; found: all that came the other way.
    """
    whole = b"".join(expected)
    if whole == found:
        return None
    same = next((at for at, (one, other) in enumerate(zip(whole, found, strict=False)) if one != other), None)
    place = min(len(whole), len(found)) if same is None else same
    at = next((at for at, end in enumerate(accumulate(map(len, expected))) if end > place), len(requests))
    of = text_of(requests[at]) if at < len(requests) else "none of the requests"
    return Difference("reply", values(whole), values(found), count, of)


def values(replies: bytes) -> list[object]:
    """The replies that bytes hold, and what is no whole one."""
    found: list[object] = []
    at = 0
    while at < len(replies):
        try:
            value, at = wire.parse(replies, at)
        except (wire.Incomplete, ValueError):
            return [*found, replies[at:]]
        found.append(value)
    return found


def states_differ(expected: dict[str, object], found: dict[str, object], count: int) -> Difference | None:
    """The first part of two pictures that differs; they may have different parts."""
    return Difference("state", expected, found, count) if expected != found else None


def logs_differ(expected: bytes, found: bytes, count: int) -> Difference | None:
    """The first line of two logs that differs."""
    if expected == found:
        return None
    return Difference("log", _log_lines(expected), _log_lines(found), count)


def _log_lines(log: bytes) -> list[object]:
    return [text_of(request) for request in whole_requests(log).requests]
