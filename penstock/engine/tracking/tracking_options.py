"""The options of a connection for CLIENT TRACKING and CLIENT CACHING."""

from typing import Final

NO_REDIRECT: Final = 0


class TrackingOptions:
    """The options of a connection with tracking on.

    by_prefix: BCAST; `prefixes` are its own then, sorted. redirect: the id of the connection that gets the messages.
    is_broken: that connection was gone when a message was due. is_chosen: CLIENT CACHING was given, and counts for the
    request in hand: YES with OPTIN, NO with OPTOUT.
    """

    __slots__ = (
        "by_prefix", "is_broken", "is_chosen", "no_loop", "opt_in", "opt_out", "prefix_bytes", "prefixes", "redirect",
    )  # fmt: skip

    def __init__(self) -> None:
        self.by_prefix = False
        self.opt_in = False
        self.opt_out = False
        self.no_loop = False
        self.redirect = NO_REDIRECT
        self.is_broken = False
        self.is_chosen = False
        self.prefixes: list[bytes] = []
        self.prefix_bytes = 0  # that `prefixes` takes

    @property
    def remembers(self) -> bool:
        """Whether the keys that the request in hand reads are remembered."""
        if self.by_prefix:
            return False
        return self.is_chosen if self.opt_in else not (self.opt_out and self.is_chosen)
