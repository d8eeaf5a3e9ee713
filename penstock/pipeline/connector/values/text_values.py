"""Texts as the values of a type: those of fields, and those within payloads."""

from datetime import UTC, datetime
from typing import Any, Final

import pyarrow
import pyarrow.compute as compute

ONE_BY_ONE: Final = 16  # texts that are not halved any more


class Texts:
    """Converts values to the declared types. One that does not fit becomes null."""

    def __init__(self, replace_bad_text: bool) -> None:
        """`replace_bad_text`: what is not UTF-8 does not become null, but has U+FFFD in it."""
        self._replace = replace_bad_text

    def cast(self, texts: Any, kind: Any) -> Any:
        if kind == texts.type:
            return texts
        if kind == pyarrow.binary():
            return texts.cast(kind)
        text = self._text(texts)
        if kind == pyarrow.string():
            return text
        try:
            return text.cast(kind)
        except pyarrow.ArrowInvalid:
            return lenient(text, kind)

    def _text(self, texts: Any) -> Any:
        try:
            return texts.cast(pyarrow.string())
        except pyarrow.ArrowInvalid:
            return pyarrow.array([self._decoded(one) for one in texts.to_pylist()], pyarrow.string())

    def _decoded(self, text: bytes | None) -> str | None:
        if text is None:
            return None
        try:
            return text.decode(errors="replace" if self._replace else "strict")
        except UnicodeDecodeError:
            return None


def lenient(texts: Any, kind: Any) -> Any:
    """Texts as a type; null for those that do not fit. The values are those of `value_of`, and found mostly together.

    White space is cut off and what looks wrong is left out first; what still fails is halved until it stands alone.
    """
    looks = _looks_like(kind)
    if looks is not None:
        texts = compute.utf8_trim_whitespace(texts)
        texts = compute.if_else(compute.match_substring_regex(texts, looks), texts, None)
    if pyarrow.types.is_timestamp(kind) and kind.tz is not None:  # Arrow takes such a time with its zone only
        has_zone = compute.match_substring_regex(texts, r"(?:[zZ]|[-+][0-9]{2}(?::?[0-9]{2})?)$")
        in_utc = lenient(compute.if_else(has_zone, None, texts), pyarrow.timestamp(kind.unit)).cast(kind)
        return compute.coalesce(in_utc, _cast(compute.if_else(has_zone, texts, None), kind))
    return _cast(texts, kind)


def _cast(texts: Any, kind: Any) -> Any:
    parts: list[Any] = []
    _halved(texts, kind, parts)
    return pyarrow.concat_arrays(parts) if parts else pyarrow.nulls(0, kind)


def _halved(texts: Any, kind: Any, parts: list[Any]) -> None:
    try:
        parts.append(texts.cast(kind))
        return
    except pyarrow.ArrowInvalid:
        pass
    if len(texts) > ONE_BY_ONE:
        half = len(texts) // 2
        _halved(texts[:half], kind, parts)
        _halved(texts[half:], kind, parts)
    else:
        parts.append(pyarrow.array([value_of(one, kind) for one in texts.to_pylist()], kind))


def _looks_like(kind: Any) -> str | None:
    """A pattern that every text fits which Arrow takes for this type; None where there is none."""
    types = pyarrow.types
    if types.is_integer(kind):
        return r"^[-+]?(?:[0-9]+|0[xX][0-9a-fA-F]+)$"
    if types.is_floating(kind):
        return r"^[-+]?(?:[0-9.][0-9.eE+-]*|(?i:nan|inf|infinity))$"
    if types.is_decimal(kind):
        return r"^[-+]?[0-9.][0-9.eE+-]*$"
    if types.is_temporal(kind):
        return r"^[0-9]{2,}[-:0-9]"
    return None


def value_of(text: str | None, kind: Any) -> Any:
    """One value converted by Arrow, or as an ISO time in another form; None if it is neither."""
    if text is None:
        return None
    try:
        return pyarrow.scalar(text.strip()).cast(kind).as_py()
    except pyarrow.ArrowInvalid:
        pass
    if not pyarrow.types.is_timestamp(kind):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if kind.tz is None:
        return moment.replace(tzinfo=None)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
