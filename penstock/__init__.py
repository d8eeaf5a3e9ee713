"""`penstock.Server` is a server in this process (testing/embedded.py), `penstock.Cluster` a cluster of processes.

They are imported when they are first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.cluster import Cluster
    from penstock.testing.embedded import Server

__all__ = ["Cluster", "Server"]


def __getattr__(name: str) -> Any:
    # imported late: every module of the package imports this one
    if name == "Server":
        from penstock.testing.embedded import Server

        return Server
    if name == "Cluster":
        from penstock.testing.cluster import Cluster

        return Cluster
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
