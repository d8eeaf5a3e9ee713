"""Whether a text has a match of an extended regular expression of POSIX, in a bounded time.

The expression becomes places of an automaton. A place takes a byte, asks where in the text it is, or leads on:

    [ab]+c     0: takes a or b   1: leads to 0 and 2   2: takes c   3: found

A text is read once, byte by byte, with the set of places that are reached. What a set becomes by a byte is worked out
when that is first needed, and kept: after that it is one look into a dictionary.
"""

from typing import Final

from penstock.engine.matching.regex_parser import UNBOUND, WORD, Expression, Kind, parsed
from penstock.errors import ReplyError

LONGEST: Final = 2048  # bytes of a pattern
MOST_PLACES: Final = 5000  # of an automaton: {} repeats the part before it
MOST_KEPT: Final = 200_000  # places in all sets together
MOST_STEPS: Final = 1_000_000  # places that are looked at by all texts together
NOWHERE: Final = -1
TAKES: Final = 0  # kinds of places
LEADS: Final = 1
ASKS: Final = 2
FOUND: Final = 3


class _State:
    """A state: the places reached at some point of a text, and the next state for each byte that was met there."""

    __slots__ = ("after_word", "at_start", "following", "places")

    def __init__(self, places: frozenset[int], at_start: bool, after_word: bool) -> None:
        self.places = places
        self.at_start = at_start
        self.after_word = after_word  # whether the byte before is one of a word
        self.following: dict[int, _State] = {}


class Regex:
    """A pattern. ReplyError if it is invalid or too long.  O(places) once for each new pair of a state and a byte."""

    def __init__(self, pattern: bytes, no_case: bool = False, most_steps: int = MOST_STEPS) -> None:
        """no_case: for texts in lower case. most_steps: after so many steps `matches` raises ReplyError."""
        if len(pattern) > LONGEST:
            raise ReplyError(b"ERR regular expression is too long, maximum is %d bytes" % LONGEST)
        if not pattern:
            raise ReplyError(b"ERR regular expression is empty")
        self._kinds: list[int] = []
        self._accepted: list[frozenset[int]] = []
        self._asked: list[Kind] = []
        self._targets: list[list[int]] = []
        self._add_all(parsed(pattern, no_case))
        self._place(FOUND)
        self._found = _State(frozenset(), False, False)
        self._kept: dict[tuple[frozenset[int], bool], _State] = {}
        self._start = _State(frozenset((0,)), True, False)
        self._steps_left = most_steps
        self._places_kept = 0

    def matches(self, text: bytes) -> bool:
        """Whether a part of the text matches the pattern. O(text), and O(places) for each new state."""
        reached = self._start
        for byte in text:
            following = reached.following.get(byte)
            if following is None:
                following = self._step(reached, byte)
            if following is self._found:
                return True
            reached = following
        return self._closed(reached, NOWHERE) is None

    # -- the automaton ----------------------------------------------------------------------------------------------

    def _place(self, kind: int, accepted: frozenset[int] = frozenset(), asked: Kind = Kind.ALL) -> int:
        if len(self._kinds) == MOST_PLACES:
            raise ReplyError(b"ERR invalid regular expression: Out of memory")
        self._kinds.append(kind)
        self._accepted.append(accepted)
        self._asked.append(asked)
        self._targets.append([len(self._kinds)])
        return len(self._kinds) - 1

    def _add_all(self, part: Expression) -> None:
        """The places of a part, which end where the next place will be."""
        if part.kind is Kind.ONE_OF:
            self._place(TAKES, part.accepted)
        elif part.kind is Kind.ALL:
            for one in part.parts:
                self._add_all(one)
        elif part.kind is Kind.ANY:
            self._add_choice(part.parts)
        elif part.kind is Kind.REPEATED:
            self._add_repeated(part)
        else:
            self._place(ASKS, asked=part.kind)

    def _add_choice(self, parts: list[Expression]) -> None:
        fork = self._place(LEADS)
        targets: list[int] = []
        ends: list[int] = []
        for part in parts:
            targets.append(len(self._kinds))
            self._add_all(part)
            ends.append(self._place(LEADS))
        self._targets[fork] = targets
        for end in ends:
            self._targets[end] = [len(self._kinds)]

    def _add_repeated(self, part: Expression) -> None:
        held = part.parts[0]
        for _ in range(part.least):
            before = len(self._kinds)
            self._add_all(held)
            if len(self._kinds) == before:  # of nothing, once is enough
                break
        if part.most == UNBOUND:
            fork = self._place(LEADS)
            self._add_all(held)
            back = self._place(LEADS)
            self._targets[back] = [fork]
            self._targets[fork] = [fork + 1, back + 1]
            return
        forks: list[int] = []
        for _ in range(part.most - part.least):
            forks.append(self._place(LEADS))
            self._add_all(held)
        for fork in forks:
            self._targets[fork] = [fork + 1, len(self._kinds)]

    # -- a step -----------------------------------------------------------------------------------------------------

    def _step(self, reached: _State, byte: int) -> _State:
        """Compute the next state for a byte, and keep it."""
        takers = self._closed(reached, byte)
        if takers is None:
            following = self._found
        else:
            places = frozenset([0] + [place + 1 for place in takers if byte in self._accepted[place]])
            after_word = byte in WORD
            kept = self._kept.get((places, after_word))
            following = kept or _State(places, False, after_word)
            if kept is None:
                self._keep(following)
        reached.following[byte] = following
        return following

    def _keep(self, reached: _State) -> None:
        self._places_kept += len(reached.places)
        if self._places_kept > MOST_KEPT:
            for one in self._kept.values():
                one.following.clear()
            self._kept.clear()
            self._start.following.clear()
            self._places_kept = len(reached.places)
        self._kept[reached.places, reached.after_word] = reached

    def _closed(self, reached: _State, byte: int) -> list[int] | None:
        """The places that take a byte, from a set on, if the next byte is this one; None: the pattern is found.

        byte: NOWHERE at the end of the text.
        """
        takers: list[int] = []
        seen = set(reached.places)
        left = list(seen)
        while left:
            place = left.pop()
            kind = self._kinds[place]
            if kind == FOUND:
                return None
            if kind == TAKES:
                takers.append(place)
                continue
            if kind == ASKS and not _holds(self._asked[place], reached, byte):
                continue
            for target in self._targets[place]:
                if target not in seen:
                    seen.add(target)
                    left.append(target)
        self._steps_left -= len(seen)
        if self._steps_left < 0:
            raise ReplyError(b"ERR regular expression takes too long")
        return takers


def _holds(asked: Kind, reached: _State, byte: int) -> bool:
    """Whether a point of the text, before a byte, is what an anchor asks for."""
    before, behind = reached.after_word, byte in WORD
    if asked is Kind.BEGIN:
        return reached.at_start
    if asked is Kind.END:
        return byte == NOWHERE
    if asked is Kind.EDGE:
        return before != behind
    if asked is Kind.NO_EDGE:
        return before == behind
    return not before and behind if asked is Kind.WORD_BEGIN else before and not behind
