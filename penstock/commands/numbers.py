"""Floating-point numbers as words: read as Redis reads them, written so that reading gives the same number."""


def double_text(number: float) -> bytes:
    """The shortest text that is read as the same number; whole numbers without a point."""
    text = repr(number)
    return (text[:-2] if text.endswith(".0") else text).encode()
