"""The screen of `penstock top`: what is chosen by keys, and the picture of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from penstock.observe import urgency
from penstock.observe.stream_survey import GroupState, StreamState, Survey, text_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

EDGE_ROWS: Final = 4  # two lines above the table, its head, the line of keys
SORTS: Final[dict[str, tuple[str, Callable[[GroupState], Any]]]] = {  # by key: a name, and what is sorted by
    "t": ("trouble", lambda one: one.rank),
    "o": ("oldest", lambda one: -(one.oldest_idle_ms or 0)),
    "l": ("lag", lambda one: -(one.lag or 0)),
    "p": ("pending", lambda one: -one.pending),
    "d": ("dead letters", lambda one: -one.dead_letters),
    "n": ("name", lambda one: 0),
}
HELP: Final = "sort: t o l p d n  / filter  a pending  s streams  arrows, space: scroll  q ends"


class Screen:
    """The view that a person has chosen. `press` takes a key, `picture` draws a survey."""

    def __init__(self, url: str, keys: str = HELP) -> None:
        """keys: the last line."""
        self._keys = keys
        self._shown_url = url.rpartition("@")[2]
        self._sort = "t"
        self._filter = ""
        self._is_typing = False
        self._only_pending = False
        self._shows_streams = False
        self._start = 0
        self._page = 1

    def press(self, key: str) -> bool:
        """Take a key: a character, or "up", "down", "pageup", "pagedown", "home"; False if it ends the program."""
        if self._is_typing:
            self._type(key)
            return True
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -self._page, "pagedown": self._page, " ": self._page}
        if key in SORTS:
            self._sort, self._start = key, 0
        elif key in moves:
            self._start = max(self._start + moves[key], 0)
        elif key == "home":
            self._start = 0
        elif key == "/":
            self._is_typing, self._filter = True, ""
        elif key == "a":
            self._only_pending, self._start = not self._only_pending, 0
        elif key == "s":
            self._shows_streams, self._start = not self._shows_streams, 0
        return key not in ("q", "\x03")

    def _type(self, key: str) -> None:
        if key in ("\r", "\n"):
            self._is_typing = False
        elif key == "\x1b":
            self._is_typing, self._filter = False, ""
        elif key in ("\x7f", "\b"):
            self._filter = self._filter[:-1]
        elif len(key) == 1 and key.isprintable():
            self._filter += key
        self._start = 0

    def picture(self, survey: Survey, before: Survey | None, seconds: float, height: int) -> "RenderableType":
        """The server in a line, what is shown and what is not in another, then a table of at most `height` lines."""
        from rich.console import Group
        from rich.text import Text

        self._page = max(height - EDGE_ROWS, 1)
        groups = [one for one in survey.groups if self._matches(one.key, one.name)]
        groups = [one for one in groups if one.pending or not self._only_pending]
        groups.sort(key=lambda one: (SORTS[self._sort][1](one), one.key, one.name))
        streams = [one for one in survey.streams if self._matches(one.key)]
        count = len(streams if self._shows_streams else groups)
        self._start = min(self._start, max(count - self._page, 0))
        rows = slice(self._start, self._start + self._page)
        if self._shows_streams:
            table = streams_table(streams[rows], before, seconds)
        else:
            table = groups_table(groups[rows])
        last = f"filter: {self._filter}_" if self._is_typing else self._keys
        summary = Text(self._summary(survey, count), no_wrap=True, overflow="ellipsis")
        keys = Text(last, style="dim", no_wrap=True, overflow="ellipsis")
        return Group(heading(self._shown_url, survey.fields), summary, table, keys)

    def _matches(self, *names: bytes) -> bool:
        return not self._filter or any(self._filter in text_of(name) for name in names)

    def _summary(self, survey: Survey, count: int) -> str:
        """A line: the rows that are shown, of how many, and what was not looked at."""
        end = min(self._start + self._page, count)
        what = "streams" if self._shows_streams else "groups"
        total = survey.keys if self._shows_streams else len(survey.groups)
        parts = [f"{self._start + 1 if count else 0} to {end} of {count} {what}"]
        if count != total:
            parts[0] += f" (of {total})"
        parts.append(summary_of(survey))
        if not self._shows_streams:
            parts.append(f"by {SORTS[self._sort][0]}")
        return ", ".join(parts)


def summary_of(survey: Survey) -> str:
    """A line: the groups that need an operator, and what was not looked at.

    >>> summary_of(Survey({}, [], [GroupState(b"s", b"g", 1, 3, 0, 90_000)], 12_000, 10_000, False))
    '1 stuck, 10000 of at least 12000 streams looked at'
    """
    stuck = f"{sum(1 for one in survey.groups if urgency.is_stuck(one.rank))} stuck"
    if survey.is_complete and survey.asked >= survey.keys:
        return f"{stuck}, in {survey.keys} streams"
    return f"{stuck}, {survey.asked} of {'' if survey.is_complete else 'at least '}{survey.keys} streams looked at"


def heading(url: str, fields: dict[str, str]) -> "RenderableType":
    from rich.text import Text

    memory_mb = int(fields.get("used_memory", "0")) / 2**20
    return Text(
        f"{url}  {fields.get('redis_version', '')}  {fields.get('connected_clients', '?')} clients"
        f"  {fields.get('instantaneous_ops_per_sec', '?')} requests/s  {memory_mb:.0f} MB",
        style="bold",
        no_wrap=True,
        overflow="ellipsis",
    )


def groups_table(groups: list[GroupState]) -> "Table":
    """One line a group."""
    from rich.text import Text

    limits = ("limits",) if any(group.limits for group in groups) else ()
    table = _table("stream", "group", *limits, numbers=("consumers", "gone", "lag", "pending", "oldest", "dead"))
    for group in groups:
        idle_ms = group.oldest_idle_ms
        lag = "?" if group.lag is None else str(group.lag)
        table.add_row(
            Text(text_of(group.key)),
            Text(text_of(group.name)),
            *([Text(group.limits, style="red" if group.is_paused or group.is_blocked else "")] if limits else []),
            str(group.consumers),
            Text(str(group.gone or ""), style="red"),
            Text(lag, style="red" if group.growth > 0 else ""),
            str(group.pending),
            Text("" if idle_ms is None else span(idle_ms), style="red" if (idle_ms or 0) >= urgency.OLD_MS else ""),
            str(group.dead_letters or ""),
        )
    return table


def streams_table(streams: list[StreamState], before: Survey | None, seconds: float) -> "Table":
    """One line a stream, with rates since the survey before."""
    from rich.text import Text

    added_before = {one.key: one.added for one in before.streams} if before is not None else {}
    table = _table("stream", numbers=("entries", "added/s"))
    for stream in streams:
        gained = stream.added - added_before.get(stream.key, stream.added)
        rate = f"{gained / seconds:.1f}" if seconds else ""
        table.add_row(Text(text_of(stream.key)), str(stream.length), rate)
    return table


def _table(*names: str, numbers: tuple[str, ...]) -> "Table":
    from rich.table import Column, Table

    names_columns = [Column(name, no_wrap=True, overflow="ellipsis", ratio=1) for name in names]
    numbers_columns = [Column(name, justify="right", no_wrap=True) for name in numbers]
    return Table(*names_columns, *numbers_columns, expand=True, box=None, pad_edge=False)


def span(ms: int) -> str:
    """A time in the unit that suits it.

    >>> span(950), span(65_000), span(7_500_000), span(200_000_000)
    ('0.9 s', '65.0 s', '125 min', '55 h')
    """
    if ms < 120_000:
        return f"{ms // 100 / 10:.1f} s"
    return f"{ms // 60_000} min" if ms < 4 * 3_600_000 else f"{ms // 3_600_000} h"
