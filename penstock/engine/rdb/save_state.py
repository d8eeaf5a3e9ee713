"""The state of saving RDB files: numbers for INFO, and requested saves; the server does the saving."""

from collections.abc import Callable
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings

NEVER: Final = -1
CANNOT_SAVE: Final = (
    b"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that"
    b" may modify the data set are disabled, because this instance is configured to report errors during writes if RDB"
    b" snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB"
    b" error."
)


class SaveState:
    """The state of one engine's RDB file. `last_save_s` is unix time; durations are of the clock that never jumps.

    `save` writes the file at once, `begin` by a child process; `load` reads it again: the first argument says whether
    the keyspace is emptied before, the second whether keys of the file replace others. Each answers why not, or "".
    They are the server's; an engine without one saves nothing.
    """

    def __init__(self, settings: Settings, clock: Clock, all_changes: Callable[[], int]) -> None:
        """all_changes: the number of changes since the start."""
        self._settings = settings
        self._all_changes = all_changes
        self._clock = clock
        self.save: Callable[[], str] | None = None
        self.begin: Callable[[], str] | None = None
        self.load: Callable[[bool, bool], str] | None = None
        self.last_save_s = clock.now_us() // 1_000_000
        self.works = True  # the last save in the background did
        self.saves = 0
        self.failures = 0  # of those in the background, since the last success
        self.runs = False  # a child saves
        self.scheduled = False
        self._began_s = 0
        self._saved_s = self._passed_s()  # the last save that worked, or the start
        self.last_seconds = NEVER
        self.copied_bytes = 0  # by the last child
        self._saved_changes = 0  # changes that the last file has
        self._changes_at_begin = 0

    def changes(self) -> int:
        """Changes since the last save."""
        return self._all_changes() - self._saved_changes

    def _passed_s(self) -> int:
        return self._clock.monotonic_us() // 1_000_000

    def seconds_since_begin(self) -> int:
        """Since the last save, be it over, began."""
        return self._passed_s() - self._began_s

    def seconds_since_save(self) -> int:
        """Since the last save that worked, or the start."""
        return self._passed_s() - self._saved_s

    def began(self) -> None:
        """A save begins, in a child or while the client waits."""
        self.runs = True
        self.scheduled = False
        self._began_s = self._passed_s()
        self._changes_at_begin = self._all_changes()

    def ended(self, worked: bool, in_background: bool) -> None:
        """It is over; `worked`: the file is there, and safe."""
        self.runs = False
        if in_background:
            self.last_seconds = self.seconds_since_begin()
            self.works = worked
        if worked:
            self.works = True
            self.last_save_s = self._clock.now_us() // 1_000_000
            self._saved_s = self._passed_s()
            self.saves += 1
            self.failures = 0
            self._saved_changes = self._changes_at_begin
        elif in_background:
            self.failures += 1

    def stopped(self) -> None:
        """The child was ended by its server: no failure (Redis 8.6.3)."""
        self.runs = False

    def flushed(self) -> None:
        """Every database was emptied. Where there are save points the file is, too, and at once (Redis 8.6.3).

        Its failure is only reported in the server's log, and INFO's rdb_saves does not count it.
        """
        if self.save is not None and self.points():
            counted = self.saves
            self.save()
            self.saves = counted

    def loaded(self) -> None:
        """Loaded keys do not count as changes."""
        self._saved_changes = self._all_changes()

    def points(self) -> list[tuple[int, int]]:
        """The save points: after so many seconds, if there were so many changes."""
        numbers = [int(word) for word in self._settings.text("save").split()]
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def running_seconds(self) -> int:
        return self.seconds_since_begin() if self.runs else NEVER
