"""The conditions of a server: it is loading, busy, paused, a replica, or cannot write its log.

Each is a bit (state.py), so that one comparison for a request checks all of them.
"""

from penstock.clock import Clock
from penstock.engine.state import BUSY, FOLLOWING, LOADING, LOG_FAILING, PAUSED
from penstock.engine.waiting.blocked_request import BlockedRequest


class Conditions:
    """The bits of a server, and what sets them.

    pauses_all, postponed: CLIENT PAUSE holds back all requests, or those that may write; what it has held back.
    active_expiry: ticks remove what has expired (DEBUG SET-ACTIVE-EXPIRE). cron_is_paused: nothing is done that is done
    ten times a second (DEBUG PAUSE-CRON). loaded_ms: when loading ended; 0: never.
    """

    __slots__ = (
        "_clock", "_holds_writes", "_loading", "_paused_until_ms", "_trouble", "active_expiry", "bits",
        "cron_is_paused", "imports", "loaded_ms", "pauses_all", "postponed",
    )  # fmt: skip

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.bits = 0
        self.active_expiry = True
        self.cron_is_paused = False
        self.imports = False  # import-mode (Valkey)
        self.loaded_ms = 0
        self.pauses_all = False
        self.postponed: list[BlockedRequest] = []
        self._trouble: bytes | None = None
        self._loading = False
        self._paused_until_ms = 0
        self._holds_writes = False

    def set(self, bit: int, holds: bool) -> None:
        """A reason why a request may not simply be run begins or ends to hold."""
        self.bits = self.bits | bit if holds else self.bits & ~bit

    @property
    def trouble(self) -> bytes | None:
        """Why writers are refused: the MISCONF text; None while the log works."""
        return self._trouble

    @trouble.setter
    def trouble(self, text: bytes | None) -> None:
        self._trouble = text
        self.set(LOG_FAILING, text is not None)

    @property
    def may_expire(self) -> bool:
        """Whether a tick may remove expired keys and fields."""
        return self.active_expiry and not self.cron_is_paused and not self._loading

    @property
    def loading(self) -> bool:
        return self._loading

    @loading.setter
    def loading(self, holds: bool) -> None:
        if self._loading and not holds:
            self.loaded_ms = self._clock.now_us() // 1000
        self._loading = holds
        self.set(LOADING, holds)

    @property
    def busy(self) -> bool:
        """With a script that takes long, in another thread: nothing else uses the keyspace."""
        return self.bits & BUSY != 0

    @busy.setter
    def busy(self, holds: bool) -> None:
        self.set(BUSY, holds)

    @property
    def paused_until_ms(self) -> int:
        """Until when CLIENT PAUSE holds requests back, in unix ms; 0: it does not."""
        return self._paused_until_ms

    @paused_until_ms.setter
    def paused_until_ms(self, until_ms: int) -> None:
        self._paused_until_ms = until_ms
        self.set(PAUSED, until_ms > 0 or self._holds_writes)

    def hold_writes(self) -> None:
        """FAILOVER: hold back requests that may write, also after CLIENT UNPAUSE."""
        self._holds_writes = True
        self.set(PAUSED, True)

    def end_holding(self) -> None:
        """FAILOVER is over: the next tick runs the requests that were held back."""
        self._holds_writes = False
        self.paused_until_ms = max(self.paused_until_ms, self._clock.now_us() // 1000)

    def writes_paused(self, now_ms: int) -> bool:
        return self._holds_writes or now_ms < self._paused_until_ms

    def keeps_expired(self, now_ms: int) -> bool:
        """Whether expired keys are only hidden: in import-mode, while writes are paused, on a replica until the DEL."""
        return self.bits & FOLLOWING != 0 or self.evicts_nothing(now_ms)

    def evicts_nothing(self, now_ms: int) -> bool:
        """Whether no key goes by itself: in import-mode, and while writes are paused."""
        return self.imports or self.writes_paused(now_ms)
