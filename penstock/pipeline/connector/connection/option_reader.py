"""Reads a user's options one by one, with their types; option names are case-insensitive.

Each role reads the options it knows and then calls `end`, which refuses unknown ones and names the nearest known
option.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from penstock.pipeline.errors import OptionError

UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|min|m|h|d)?\Z")
YES: Final = ("true", "yes", "1", "on")
NO: Final = ("false", "no", "0", "off")
SPARKS_OWN: Final = ("checkpointlocation", "path", "queryname", "numpartitions", "inferschema")


class OptionReader:
    """The options of one `load`, `save` or `start`; `role` names it in messages."""

    def __init__(self, options: Mapping[str, str], role: str) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._role = role
        self._asked: dict[str, str] = {}

    def text(self, name: str) -> str | None:
        """The value as text; None if it is missing or empty."""
        self._asked[name.lower()] = name
        return self._options.get(name.lower()) or None

    def has(self, name: str) -> bool:
        return self.text(name) is not None

    def integer(self, name: str, default: int | None, at_least: int = 0, at_most: int = 2**63 - 1) -> Any:
        """An int, or `default` (the caller knows its type)."""
        word = self.text(name)
        if word is None:
            return default
        try:
            number = int(word)
        except ValueError:
            raise self.mistake(name, "is to be a whole number") from None
        if not at_least <= number <= at_most:
            raise self.mistake(name, f"is to be at least {at_least}" + (f", at most {at_most}" * (at_most < 2**63 - 1)))
        return number

    def flag(self, name: str, default: bool) -> bool:
        word = (self.text(name) or ("true" if default else "false")).lower()
        if word not in YES + NO:
            raise self.mistake(name, "is to be true or false")
        return word in YES

    def choice(self, name: str, default: str, choices: Sequence[str]) -> str:
        """One of `choices`, in their spelling, however it was written."""
        word = self.text(name) or default
        for choice in choices:
            if choice.lower() == word.lower():
                return choice
        raise self.mistake(name, "is to be one of " + ", ".join(choices))

    def duration_ms(self, name: str, default: str | None) -> Any:
        """Milliseconds, from `500ms`, `10s`, `15m`, `2h`, `1d`; a bare number is milliseconds."""
        word = self.text(name) or default
        if word is None:
            return None
        found = _DURATION.match(word.strip())
        if found is None:
            raise self.mistake(name, "is to be a duration: 500ms, 10s, 15m, 2h, 1d")
        return int(float(found[1]) * UNITS_MS[found[2] or "ms"])

    def moment_ms(self, name: str, word: str) -> int:
        """Unix milliseconds of a word of an option: those or an ISO 8601 time; a time without a zone is UTC."""
        if re.fullmatch(r"[0-9]{1,19}", word):
            return int(word)
        try:
            moment = datetime.fromisoformat(word)
        except ValueError:
            raise self.mistake(name, "is to be unix milliseconds or an ISO time, 2026-11-20T10:00Z") from None
        return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))

    def names(self, name: str) -> list[str]:
        """A list: separated by commas, or a JSON array of strings (for names with commas); [] if missing."""
        word = self.text(name)
        if word is None:
            return []
        if not word.lstrip().startswith("["):
            return [part.strip() for part in word.split(",") if part.strip()]
        try:
            found = json.loads(word)
        except ValueError:
            return [part.strip() for part in word.split(",") if part.strip()]  # a key may begin with a bracket
        if not all(isinstance(part, str) and part for part in found):
            raise self.mistake(name, "is to be a JSON array of names")
        return list(found)

    def mistake(self, name: str, what: str) -> OptionError:
        """An OptionError about one option's value."""
        value = "" if name in ("password",) else f", not {self._options.get(name.lower(), '')!r}"
        return OptionError(f"option {name!r} of the {self._role} {what}{value}")

    def end(self) -> None:
        """OptionError for an option that was not read: a mistyped name must not be ignored silently."""
        for name in self._options:
            if name in self._asked or name in SPARKS_OWN or name.startswith("spark."):
                continue
            near = difflib.get_close_matches(name, self._asked, 1)
            hint = (
                f"did you mean {self._asked[near[0]]!r}?"
                if near
                else "it takes " + ", ".join(sorted(self._asked.values()))
            )
            raise OptionError(f"the {self._role} knows no option {name!r}: {hint}")


def milliseconds(moment: datetime) -> int:
    """Unix milliseconds, without the rounding of a float."""
    since = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000 + since.microseconds // 1_000
