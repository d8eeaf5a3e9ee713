"""`penstock.Server` is a server in this process (testing/embedded.py); it is imported when it is first used."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.embedded import Server

__all__ = ["Server"]


def __getattr__(name: str) -> Any:
    if name != "Server":
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from penstock.testing.embedded import Server  # imported late: every module of the package imports this one

    return Server
