"""The connections of a streaming query's driver: requests to several servers at the same time, and blocking reads."""

import contextlib
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final, TypeVar

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request
from penstock.pipeline.connector.connection.cluster import connect
from penstock.pipeline.connector.connection.connection_options import Servers

Answer = TypeVar("Answer")

AGAIN_S: Final = 0.01


class Connections:
    """One connection to each server; with several servers a second one to each, for requests that block.

    A third, `listening`, is made where tasks publish what they miss; a fourth, `named`, by a member of a group.
    """

    def __init__(self, servers: Servers) -> None:
        self.asking = {one.name: connect(one, servers.access) for one in servers.endpoints}
        self._waiting = {one.name: connect(one, servers.access) for one in servers.endpoints}
        self.listening = {one.name: connect(one, servers.access) for one in servers.endpoints}
        self.named = {one.name: connect(one, servers.access) for one in servers.endpoints}
        self._pool = ThreadPoolExecutor(len(self.asking), "penstock") if len(self.asking) > 1 else None

    def each(self, ask: Callable[[Client], Answer]) -> dict[str, Answer]:
        """`ask` at every server; the first failure is raised."""
        if self._pool is None:
            return {name: ask(client) for name, client in self.asking.items()}
        futures = {name: self._pool.submit(ask, client) for name, client in self.asking.items()}
        return {name: future.result() for name, future in futures.items()}

    def wait(self, requests: dict[str, Request], wait_ms: int, retry: bool) -> dict[str, Reply]:
        """The replies to requests that block for up to `wait_ms`.

        As soon as one is served the others are unblocked, and have the reply None.
        """
        if self._pool is None:
            return {
                name: self.asking[name].call(*words, retry=retry, wait_s=wait_ms / 1000)
                for name, words in requests.items()
            }
        calls: dict[str, Future[Reply]] = {
            name: self._pool.submit(self._waiting[name].call, *words, retry=retry, wait_s=wait_ms / 1000)
            for name, words in requests.items()
        }
        wait(calls.values(), wait_ms / 1000, FIRST_COMPLETED)
        for name, call in calls.items():
            self._unblock(name, call)
        return {name: call.result() for name, call in calls.items()}

    def _unblock(self, name: str, call: "Future[Reply]") -> None:
        """Unblock a request; repeated until it is answered, because it may not have reached the server yet."""
        with contextlib.suppress(ReplyError):  # no permission: then it ends by its timeout
            while not call.done() and not self._waiting[name].unblock(self.asking[name]):
                wait([call], AGAIN_S)

    def close(self) -> None:
        for clients in (self.asking, self._waiting, self.listening, self.named):
            for client in clients.values():
                client.close()
        if self._pool is not None:
            self._pool.shutdown(wait=False)
