"""The times of a schedule: every so many ms, or five cron words in UTC (`minute hour day month weekday`).

A cron word is `*`, a number, a range `a-b`, `*` or a range with a step (`*/5`, `8-18/2`), or several of these with
commas between. Weekdays go from 0 to 7; 0 and 7 are Sunday. A day must fit the words for day and weekday; where both
are restricted (neither begins with `*`), one of them. Moments are unix ms.
"""

from datetime import date
from typing import Final

from penstock.storage.deadlines import NEVER

SHORTEST_MS: Final = 1000
LONGEST_MS: Final = 31_536_000_000  # a year
MINUTE_MS: Final = 60_000
MONTHS_LOOKED_AT: Final = 97  # eight years and the month itself: so long may it be to the next 29th of February
FIRST_MONTH: Final = 1970 * 12  # months are counted from January of the year 0 on
END_OF_MONTHS: Final = (date.max.year + 1) * 12
EPOCH: Final = date(1970, 1, 1).toordinal()
LAST_DAY: Final = date.max.toordinal() - EPOCH
EACH_WEEK: Final = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35  # times a set of weekdays: the set in six weeks
BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Recurrence:
    """A series of moments, from `start_ms` on. period_ms: 0 for cron words, whose fields are sets of bits."""

    __slots__ = ("days", "hours", "is_either", "minutes", "months", "period_ms", "start_ms", "weekdays")

    def __init__(self, start_ms: int, period_ms: int) -> None:
        self.start_ms = start_ms
        self.period_ms = period_ms
        self.minutes = self.hours = self.days = self.months = self.weekdays = 0
        self.is_either = False

    def first_from(self, from_ms: int) -> int:
        """The first moment that is not before `from_ms`; NEVER if there is none within eight years."""
        from_ms = max(from_ms, self.start_ms)
        if self.period_ms:
            return self.start_ms + -(-(from_ms - self.start_ms) // self.period_ms) * self.period_ms
        day, minute = divmod(-(-from_ms // MINUTE_MS), 1440)
        one = self._first_day(day)
        found = self._first_minute(minute if one == day else 0)
        if found < 0:
            one, found = self._first_day(day + 1), self._first_minute(0)
        return NEVER if one < 0 else (one * 1440 + found) * MINUTE_MS

    def last_until(self, until_ms: int) -> int:
        """The last moment that is not behind `until_ms`; a moment before the start if there is none."""
        if self.period_ms:
            return self.start_ms + (until_ms - self.start_ms) // self.period_ms * self.period_ms
        day, minute = divmod(min(until_ms // MINUTE_MS, LAST_DAY * 1440), 1440)
        one = self._last_day(day)
        found = self._last_minute(minute if one == day else 1439)
        if found < 0:
            one, found = self._last_day(day - 1), self._last_minute(1439)
        return self.start_ms - 1 if one < 0 else (one * 1440 + found) * MINUTE_MS

    def back(self, moment_ms: int, count: int, until_ms: int) -> int:
        """The moment `count` before one of the series, but none before `until_ms`, which is one. O(count) for cron."""
        if self.period_ms:
            return max(moment_ms - count * self.period_ms, until_ms)
        while count and moment_ms > until_ms:
            moment_ms = self.last_until(moment_ms - 1)
            count -= 1
        return moment_ms

    def _first_day(self, day: int) -> int:
        """The first day from one on that fits, in days since 1970; -1 if there is none within eight years."""
        if day >= LAST_DAY:
            return -1
        first = date.fromordinal(EPOCH + day)
        least, month = first.day, first.year * 12 + first.month - 1
        for one in range(month, min(month + MONTHS_LOOKED_AT, END_OF_MONTHS)):
            left = self._days_of(one) >> least << least
            if left:
                return _day_of(one, (left & -left).bit_length() - 1)
            least = 0
        return -1

    def _last_day(self, day: int) -> int:
        """The last day up to one that fits, in days since 1970; -1 if there is none within eight years."""
        if day < 0:
            return -1
        last = date.fromordinal(EPOCH + day)
        most, month = last.day, last.year * 12 + last.month - 1
        for one in range(month, max(month - MONTHS_LOOKED_AT, FIRST_MONTH - 1), -1):
            left = self._days_of(one) & ((2 << most) - 1)
            if left:
                return _day_of(one, left.bit_length() - 1)
            most = 31
        return -1

    def _days_of(self, month: int) -> int:
        """The days of a month that fit, as a set of bits."""
        if not self.months >> month % 12 + 1 & 1:
            return 0
        from calendar import monthrange  # imported late: few servers have entries at the times of cron words

        weekday, length = monthrange(month // 12, month % 12 + 1)  # of its first day; 0 is Monday
        of_weekdays = (self.weekdays & 127) * EACH_WEEK >> weekday
        fitting = self.days | of_weekdays if self.is_either else self.days & of_weekdays
        return fitting & ((2 << length) - 2)

    def _first_minute(self, minute: int) -> int:
        """The first one of a day from one on; -1 if there is none."""
        hour, minute = divmod(minute, 60)
        for one in range(hour, 24):
            left = self.minutes >> minute << minute if self.hours >> one & 1 else 0
            if left:
                return one * 60 + (left & -left).bit_length() - 1
            minute = 0
        return -1

    def _last_minute(self, minute: int) -> int:
        """The last one of a day up to one; -1 if there is none."""
        hour, minute = divmod(minute, 60)
        for one in range(hour, -1, -1):
            left = self.minutes & ((2 << minute) - 1) if self.hours >> one & 1 else 0
            if left:
                return one * 60 + left.bit_length() - 1
            minute = 59
        return -1


def _day_of(month: int, day: int) -> int:
    """A day of a month, in days since 1970."""
    return date(month // 12, month % 12 + 1, day).toordinal() - EPOCH


def read(word: bytes, start_ms: int) -> Recurrence | None:
    """The series that a field says; None if it is neither a number of ms nor five cron words.

    >>> read(b"60000", 5).first_from(6)
    60005
    >>> read(b"10,40 * * * *", 0).first_from(1_795_300_000_000)
    1795300800000
    """
    if word.isdigit() and len(word) <= len(str(LONGEST_MS)):
        return Recurrence(start_ms, int(word)) if SHORTEST_MS <= int(word) <= LONGEST_MS else None
    words = word.split()
    if len(words) != len(BOUNDS):
        return None
    sets = [_bits(words[at], BOUNDS[at][0], BOUNDS[at][1]) for at in range(len(BOUNDS))]
    if 0 in sets:
        return None
    cron = Recurrence(start_ms, 0)
    cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays = sets
    cron.weekdays |= cron.weekdays >> 7  # the other Sunday
    cron.is_either = not words[2].startswith(b"*") and not words[4].startswith(b"*")
    return cron


def _bits(word: bytes, least: int, most: int) -> int:
    """The numbers of a cron word as a set of bits; 0 if it is none."""
    found = 0
    for part in word.split(b","):
        span, slash, step = part.partition(b"/")
        first, dash, last = span.partition(b"-")
        if span == b"*":
            first, last = b"%d" % least, b"%d" % most
        elif not dash:
            last = first
        if slash and (not step.isdigit() or (span != b"*" and not dash)):
            return 0
        if not (first.isdigit() and last.isdigit() and len(first) < 3 and len(last) < 3 and len(step) < 3):
            return 0
        low, high, by = int(first), int(last), int(step) if slash else 1
        if not (least <= low <= high <= most and by):
            return 0
        for number in range(low, high + 1, by):
            found |= 1 << number
    return found
