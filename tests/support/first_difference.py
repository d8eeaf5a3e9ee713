"""Where two values differ: the smallest parts that do, and the way to them."""

from tests.support.wire import Array, Bulk, Map, Push, Set


def first_difference(theirs: object, ours: object, way: str = "") -> tuple[str, object, object]:
    """The first place where they differ, as `groups/0/lag`, and what is there on either side."""
    parts, others = _parts(theirs), _parts(ours)
    if type(theirs) is type(ours) and parts is not None and others is not None and len(parts) == len(others):
        name = ""
        for at, (one, other) in enumerate(zip(parts, others, strict=True)):
            if one != other:
                return first_difference(one, other, f"{way}/{name if at % 2 else at}" if name else f"{way}/{at}")
            name = one.text.decode("latin1") if isinstance(one, Bulk) else one if isinstance(one, str) else ""
    return way, theirs, ours


def _parts(value: object) -> list[object] | None:
    """What a value is made of; None for one that is whole."""
    if isinstance(value, Array | Set | Push):
        return list(value.elements)
    if isinstance(value, Map):
        return [word for pair in value.pairs for word in pair]
    if isinstance(value, dict):
        return [word for key in sorted(value) for word in (key, value[key])]
    return value if isinstance(value, list) else None


def lines(theirs: object, ours: object) -> list[str]:
    """Three lines for the reader of a failed test."""
    way, one, other = first_difference(theirs, ours)
    return [f"  at {way or 'all of it'}", f"  Redis:    {one}", f"  Penstock: {other}"]
