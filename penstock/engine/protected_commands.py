"""DEBUG and MODULE LOAD: commands that only enable-debug-command and enable-module-command allow (Redis 8.6.3)."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine.session import Session
from penstock.engine.table.row import Row
from penstock.errors import ReplyError

LOCAL_ADDRESSES: Final = ("127.", "[::1]:", "::1")
REFUSAL: Final = (
    'ERR %s command not allowed. If the enable-%s-command option is set to "local", you can run it from a local'
    " connection, otherwise you need to set this option in the configuration file, and then restart the server."
)


def is_local(session: Session) -> bool:
    """Whether a client is on this machine. A unix socket counts as local."""
    return session.unix_socket or session.address.startswith(LOCAL_ADDRESSES)


def allows(setting: str, session: Session) -> bool:
    """Whether a client may do what a directive with the values no, local and yes is about."""
    return setting == "yes" or (setting == "local" and is_local(session))


def require_allowed(settings: Settings, session: Session, row: Row) -> None:
    """Refuse a protected command."""
    kind = row.guarded_by
    if kind and not allows(settings.text(f"enable-{kind}-command"), session):
        raise ReplyError((REFUSAL % (kind.upper(), kind)).encode())
