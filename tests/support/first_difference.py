"""Where two values differ: the smallest parts that do, and the way to them."""

import re
from itertools import zip_longest
from typing import Final

from penstock.storage.streams import ids
from tests.support.wire import Array, Bulk, Map, Push, Set

WIDEST: Final = 300  # characters of a value that are shown
BEFORE: Final = 60  # of them, before the first that differs
_NAME: Final = re.compile(r"[A-Za-z][\w .|-]*")


class Nothing:
    """Stands where one side has a part and the other has none."""

    def __repr__(self) -> str:
        return "(nothing)"


NOTHING: Final = Nothing()


def first_difference(theirs: object, ours: object, way: str = "") -> tuple[str, object, object]:
    """The first place where they differ, as `groups/0/lag`, and what is there on either side."""
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() != ours.keys():
        name = min(theirs.keys() ^ ours.keys(), key=str)
        return f"{way}/{name}", theirs.get(name, NOTHING), ours.get(name, NOTHING)
    parts, others = _parts(theirs), _parts(ours)
    if type(theirs) is not type(ours) or parts is None or others is None:
        return way, theirs, ours
    if len(parts) != len(others):
        if isinstance(theirs, Set | Map):
            return way, theirs, ours
        pairs = enumerate(zip_longest(parts, others, fillvalue=NOTHING))
        return next((f"{way}/{at}", one, other) for at, (one, other) in pairs if one != other)
    names = _names(theirs, parts)
    at = next((at for at, part in enumerate(parts) if part != others[at]), None)
    if at is None:
        return way, theirs, ours
    is_named = bool(names) and at % 2 == 1
    return first_difference(parts[at], others[at], f"{way}/{names[at // 2] if is_named else at}")


def _names(value: object, parts: list[object]) -> list[str]:
    """The name of each second part, where each first one is a name; else empty."""
    if isinstance(value, dict):
        return list(map(str, parts[::2]))
    texts = [part.text if isinstance(part, Bulk) else part for part in parts[::2]]
    names = [text.decode("latin-1") for text in texts if isinstance(text, bytes)]
    is_named = len(parts) % 2 == 0 and len(names) == len(texts) and all(map(_NAME.fullmatch, names))
    return names if is_named else []


def _parts(value: object) -> list[object] | None:
    """What a value is made of; None for one that is whole."""
    if isinstance(value, Array | Set | Push):
        return list(value.elements)
    if isinstance(value, Map):
        return [word for pair in value.pairs for word in pair]
    if isinstance(value, dict):
        return [word for key in sorted(value) for word in (key, value[key])]
    return list(value) if isinstance(value, list | tuple) else None


def lines(theirs: object, ours: object, names: tuple[str, str] = ("Redis", "Penstock")) -> list[str]:
    """Three lines for the reader of a failed test; names: of the two sides."""
    way, one, other = first_difference(theirs, ours)
    texts = [_text(one), _text(other)]
    same = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    width = max(map(len, names)) + 1
    return [
        f"  at {way or 'all of it'}",
        *[f"  {name + ':':{width}} {_cut(text, same)}" for name, text in zip(names, texts, strict=True)],
    ]


def _text(value: object) -> str:
    """A value; an id that is one number as the protocol writes it."""
    if isinstance(value, int) and value >= 1 << 64:
        return ids.text(value).decode()
    return repr(value) if isinstance(value, bytes | str) else str(value)


def _cut(text: str, same: int) -> str:
    """What is around the first character that differs."""
    start = max(same - BEFORE, 0) if len(text) > WIDEST else 0
    return ("..." if start else "") + text[start : start + WIDEST] + ("..." if start + WIDEST < len(text) else "")
