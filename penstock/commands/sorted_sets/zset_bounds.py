"""Reads the ends of ranges in sorted sets: `5`, `(5`, `-inf` for scores, `[a`, `(a`, `-`, `+` for members."""

from penstock.engine import numbers, refusals
from penstock.engine.context import Context
from penstock.errors import ReplyError
from penstock.storage.types.sorted_sets import LexBound, ScoreBound


def score_range(ctx: Context, low: bytes, high: bytes) -> tuple[ScoreBound, ScoreBound]:
    """Two bounds of scores, the lower first."""
    return _score_bound(ctx, low), _score_bound(ctx, high)


def _score_bound(ctx: Context, word: bytes) -> ScoreBound:
    """One without a number is 0; Valkey refuses it since 9.2."""
    excludes = word.startswith(b"(")
    score = c_double(word[1:] if excludes else word)
    if score is None or (word in (b"", b"(") and ctx.compatibility.is_valkey_since("9.2.0")):
        raise ReplyError(b"ERR min or max is not a float")
    return ScoreBound(score, excludes)


def c_double(word: bytes) -> float | None:
    """A decimal number up to a NUL byte; 0 for an empty text. Too large is infinite, too small is 0.

    None for NaN or a text that is not a number. (Used for bounds and by SORT; Redis 8.6.3.)
    """
    text = refusals.c_string(word)
    return numbers.decimal(text) if text else 0.0


def lex_range(low: bytes, high: bytes) -> tuple[LexBound, LexBound]:
    """Two bounds of members, the lower first."""
    return _lex_bound(low), _lex_bound(high)


def _lex_bound(word: bytes) -> LexBound:
    if refusals.c_string(word) == b"-":
        return LexBound(b"", False, -1)
    if refusals.c_string(word) == b"+":
        return LexBound(b"", False, 1)
    if not word.startswith((b"(", b"[")):
        raise ReplyError(b"ERR min or max not valid string range item")
    return LexBound(word[1:], word.startswith(b"("))
