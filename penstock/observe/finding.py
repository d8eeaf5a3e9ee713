"""A finding of `penstock doctor`."""

from typing import NamedTuple


class Finding(NamedTuple):
    """One thing: `level` is "ok", "hint" or "problem"; where it is not "ok", there is advice.

    command: what mends it, or shows more of it; empty where there is none. Words in capitals are to be filled in.
    """

    about: str
    found: str
    level: str = "ok"
    advice: str = ""
    command: str = ""

    @classmethod
    def problem(cls, about: str, found: str, advice: str, command: str = "") -> "Finding":
        return cls(about, found, "problem", advice, command)

    @classmethod
    def hint(cls, about: str, found: str, advice: str, command: str = "") -> "Finding":
        return cls(about, found, "hint", advice, command)

    @classmethod
    def judged(cls, is_problem: bool, about: str, found: str, advice: str, command: str = "") -> "Finding":
        """A problem, or the same without advice."""
        return cls.problem(about, found, advice, command) if is_problem else cls(about, found)
