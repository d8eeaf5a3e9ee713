"""What an engine knows about policies as a whole: whether it keeps them, and what was done since the start."""

from penstock.engine.policies.policy_log import PolicyLog
from penstock.engine.table.client_compat import Compatibility


class PolicyState:
    """kept: policies are applied; a named `compat-version` has none, so they sleep. used: some stream has had a policy.

    loaded_ms: when loading ended. retry_ms: before that, no tick tries again what could not be logged.
    slept: since the last tick that applied them, policies were not applied for a while (this server was a replica).
    log: lines about policies. The counters are those of INFO.
    """

    __slots__ = (
        "dead_lettered",
        "forwarded",
        "kept",
        "loaded_ms",
        "log",
        "reaped",
        "redelivered",
        "retry_ms",
        "slept",
        "trimmed",
        "used",
    )

    def __init__(self, compatibility: Compatibility) -> None:
        self.kept = compatibility.is_newest
        self.used = False
        self.loaded_ms = 0
        self.log = PolicyLog()
        self.retry_ms = 0
        self.slept = False
        self.trimmed = 0
        self.redelivered = 0
        self.reaped = 0
        self.dead_lettered = 0
        self.forwarded = 0
