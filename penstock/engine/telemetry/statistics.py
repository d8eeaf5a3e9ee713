"""The counters of INFO."""

from collections import deque
from typing import Final

from penstock.engine.access.selector import Reason
from penstock.engine.table.row import Row

SHORT_USEC: Final = 512
LONGEST_NS: Final = 1_000_000_000  # a longer call counts as this long in the histogram (Redis 8.6.3)
SAMPLE_EVERY_MS: Final = 100
SAMPLES: Final = 16  # the instantaneous rates are means over so many samples


class Histogram:
    """How long one command's calls took, to two significant digits.

    A bucket is known by the longest time in it, in ns: below 256 ns each ns has its own, above that each power
    of two is cut into 128. So the percentiles are the very numbers that Redis shows for the same times. Short calls
    are counted by their microseconds (`short`) and put into buckets when they are asked for.
    """

    __slots__ = ("_long", "short")

    def __init__(self) -> None:
        self.short = [0] * SHORT_USEC
        self._long: dict[int, int] = {}

    def add(self, usec: int, calls: int = 1) -> None:
        if usec < SHORT_USEC:
            short = self.short
            short[usec] = short[usec] + calls  # compiled, += would add objects
        else:
            top = bucket_of(usec)
            self._long[top] = self._long.get(top, 0) + calls

    def buckets(self) -> dict[int, int]:
        """Calls by bucket, ascending."""
        counts: dict[int, int] = {}
        for usec, calls in enumerate(self.short):
            if calls:
                top = bucket_of(usec)
                counts[top] = counts.get(top, 0) + calls
        for top in sorted(self._long):
            counts[top] = counts.get(top, 0) + self._long[top]
        return counts

    def percentile(self, percent: float) -> float:
        """The time in microseconds that so many percent of the calls did not exceed; 0 without calls."""
        buckets = self.buckets()
        wanted = max(int(percent / 100 * sum(buckets.values()) + 0.5), 1)
        for top, calls in buckets.items():
            wanted -= calls
            if wanted <= 0:
                return top / 1000
        return 0.0

    def cumulated(self) -> list[tuple[int, int]]:
        """For each doubling of 1024 ns (its microseconds): how many calls took no longer. Repetitions left out."""
        steps: list[tuple[int, int]] = []
        buckets = self.buckets()
        level, seen, total = 1024, 0, sum(buckets.values())
        while seen < total:
            top = highest_equivalent(level)
            count = sum(calls for bucket, calls in buckets.items() if bucket <= top)
            if count > seen:
                steps.append((top // 1000, count))
            seen = count
            level *= 2
        return steps


def bucket_of(usec: int) -> int:
    """The bucket of a call that took so long."""
    return highest_equivalent(min(usec * 1000, LONGEST_NS) or 1)


def highest_equivalent(ns: int) -> int:
    """The longest time that falls into the same bucket."""
    shift = ns.bit_length() - 8
    return ns if shift <= 0 else ((ns >> shift) + 1 << shift) - 1


class RowStatistics:
    """One command's share of INFO commandstats and latencystats. `short` are those of `times`, at hand."""

    __slots__ = ("calls", "failed", "rejected", "short", "slow_calls", "slow_max_usec", "slow_usec", "times", "usec")

    def __init__(self) -> None:
        self.calls = 0
        self.usec = 0
        self.rejected = 0  # refused before execution
        self.failed = 0  # answered with an error
        self.slow_calls = 0  # those that the slow log took
        self.slow_usec = 0
        self.slow_max_usec = 0
        self.times = Histogram()
        self.short = self.times.short


class Statistics:
    """Counters of one server since its start or the last CONFIG RESETSTAT."""

    __slots__ = (
        "_last", "_last_row", "_rates", "_sampled", "_sampled_ms", "commands", "connections", "denied_auth",
        "denied_certificate", "denied_channel", "denied_command", "denied_database", "denied_key", "error_replies",
        "errors", "evicted", "evicted_clients", "expired", "expired_active", "expired_subkeys",
        "expired_subkeys_active", "expiry_cuts", "expiry_usec", "hits", "input_bytes", "largest_output_buffer",
        "largest_query_buffer", "lazyfreed", "misses", "output_buffer_disconnections", "output_bytes",
        "query_buffer_disconnections", "reads", "rejected_connections", "rows", "started_ms", "writes",
    )  # fmt: skip

    def __init__(self, now_ms: int) -> None:
        self.started_ms = now_ms
        self._sampled_ms = now_ms
        self.reset()

    def reset(self) -> None:
        """CONFIG RESETSTAT. The time of the start stays."""
        self.commands = 0
        self.connections = 0
        self.rejected_connections = 0
        self.hits = 0
        self.misses = 0
        self.expired = 0
        self.expired_active = 0  # of them those that the tick removed
        self.expiry_usec = 0  # what ticks took that removed some
        self.expiry_cuts = 0  # ticks that ended by time
        self.evicted = 0
        self.evicted_clients = 0
        self.lazyfreed = 0  # values that Redis frees in a thread of its own
        self.expired_subkeys = 0  # fields of hashes
        self.expired_subkeys_active = 0  # of them those that the tick removed
        self.input_bytes = 0
        self.output_bytes = 0
        self.reads = 0  # from sockets
        self.writes = 0  # to sockets
        self.denied_auth = 0
        self.denied_command = 0  # by the rules of users, as the next two
        self.denied_database = 0
        self.denied_key = 0
        self.denied_channel = 0
        self.denied_certificate = 0
        self.query_buffer_disconnections = 0
        self.output_buffer_disconnections = 0
        self.largest_query_buffer = 0
        self.largest_output_buffer = 0
        self.error_replies = 0
        self.errors: dict[bytes, int] = {}  # by code
        self.rows: dict[str, RowStatistics] = {}  # by the row's name
        self._last_row: Row | None = None  # the last that was asked for, and its statistics
        self._last = RowStatistics()
        self._sampled = (0, 0, 0)  # commands, bytes in, bytes out
        self._rates: deque[tuple[float, float, float]] = deque(maxlen=SAMPLES)  # the same, a second

    def of(self, row: Row) -> RowStatistics:
        counted = self.rows.get(row.name)
        if counted is None:
            counted = self.rows[row.name] = RowStatistics()
        self._last_row, self._last = row, counted
        return counted

    def ran(self, row: Row, usec: int, failure: bytes | None, is_counted: bool = False) -> None:
        """A request was run; `failure` is its error text, if it has one. is_counted: the error was counted before."""
        self.commands += 1
        counted = self._last if row is self._last_row else self.of(row)
        counted.calls += 1
        if usec < 0:
            usec = 0  # the clock was set back
        counted.usec += usec
        if usec < SHORT_USEC:
            short = counted.short
            short[usec] = short[usec] + 1  # compiled, += would add objects
        else:
            counted.times.add(usec)
        if failure is not None:
            counted.failed += 1
            if not is_counted:
                self._count_error(failure)

    def ran_together(self, row: Row, usec: int, calls: int) -> None:
        """Requests of one shape were run at once, none of them refused: each counts with its share of the time."""
        usec = max(usec, 0)
        counted = self._last if row is self._last_row else self.of(row)
        self.commands += calls
        counted.calls += calls
        counted.usec += usec
        counted.times.add(usec // calls, calls)

    def count_slow(self, row: Row, usec: int) -> None:
        """Count a call that the slow log has taken."""
        counted = self.of(row)
        counted.slow_calls += 1
        counted.slow_usec += usec
        counted.slow_max_usec = max(counted.slow_max_usec, usec)

    def reject(self, row: Row | None, text: bytes) -> None:
        """A request was refused before it was run."""
        if row is not None:
            self.of(row).rejected += 1
        self._count_error(text)

    def count_denial(self, reason: Reason) -> None:
        """A request was refused by its user's rules."""
        if reason is Reason.DATABASE:
            self.denied_database += 1
        elif reason is Reason.COMMAND:
            self.denied_command += 1
        elif reason is Reason.KEY:
            self.denied_key += 1
        else:
            self.denied_channel += 1

    def _count_error(self, text: bytes) -> None:
        code = text.split(b" ", 1)[0]
        self.errors[code] = self.errors.get(code, 0) + 1
        self.error_replies += 1

    def sample(self, now_ms: int) -> None:
        """Take a sample for `rates`, if the last one is old enough. Called by every tick."""
        elapsed_ms = now_ms - self._sampled_ms
        if elapsed_ms < SAMPLE_EVERY_MS:
            return
        current = (self.commands, self.input_bytes, self.output_bytes)
        before = self._sampled
        commands, came, went = ((new - old) * 1000 / elapsed_ms for new, old in zip(current, before, strict=True))
        self._rates.append((commands, came, went))
        self._sampled, self._sampled_ms = current, now_ms

    def rates(self) -> tuple[float, float, float]:
        """Commands, bytes received and bytes sent, a second."""
        commands = came = went = 0.0
        for of_commands, of_input, of_output in self._rates:
            commands += of_commands
            came += of_input
            went += of_output
        count = len(self._rates) or 1
        return commands / count, came / count, went / count
