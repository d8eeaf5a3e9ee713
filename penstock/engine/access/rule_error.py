"""Why a rule of a user cannot be applied."""


class RuleError(Exception):
    """One word of ACL SETUSER, of a `user` line or of the ACL file is refused; `reason` is Redis's text (8.6.3)."""

    def __init__(self, reason: bytes) -> None:
        super().__init__(reason)
        self.reason = reason
