"""What a stream and its groups look like, but for times and node counts: comparable before and after a crash."""

from collections.abc import Callable

from tests.crash.requests import STREAM, STRINGS

Ask = Callable[..., object]
"""One request's words in, its reply as Python values out."""

# A log has no seen and active times; nodes are packed anew when a log is rewritten.
LEFT_OUT = (b"seen-time", b"active-time", b"radix-tree-keys", b"radix-tree-nodes")


def picture(ask: Ask, prefix: str) -> object:
    """Every key that tests/crash/requests.py makes."""
    stream = ask(b"XINFO", b"STREAM", (prefix + STREAM).encode(), b"FULL", b"COUNT", b"0")
    strings = [ask(b"GET", (prefix + name).encode()) for name in STRINGS]
    return str(stream) if isinstance(stream, Exception) else timeless(stream), strings


def timeless(fields: object) -> dict[bytes, object]:
    """A reply of names and values as a dict, without what differs by time."""
    assert isinstance(fields, list)
    pairs = dict(zip(fields[::2], fields[1::2], strict=True))
    for name in LEFT_OUT:
        pairs.pop(name, None)
    for name in (b"groups", b"consumers"):
        if isinstance(pairs.get(name), list):
            pairs[name] = [timeless(each) for each in pairs[name]]
    for name in (b"pel", b"pending"):
        if isinstance(pairs.get(name), list):
            # Of a group: id, owner, time, count; of a consumer: id, time, count.
            pairs[name] = [[*held[:-2], held[-1]] for held in pairs[name]]
    return pairs
