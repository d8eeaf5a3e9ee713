"""Logins of the console: each is a session with a connection of its own, made as the user that logged in.

The console keeps no password. When the server closes the connection (the user was deleted, CLIENT KILL) the session is
over. While the user `default` needs no password, each browser that can reach the console is that user.
"""

import hmac
import secrets
from collections.abc import Callable
from typing import Final

import hiredis

from penstock.engine.session import Endpoints
from penstock.observe.console.engine_client import EngineClient, EngineDoor, Gone

MOST_LOGINS: Final = 64
IDLE_S: Final = 8 * 3600.0  # an unused session ends after so long
MOST_FAILURES: Final = 20  # of logins in FAILURES_S; above, further ones are refused
FAILURES_S: Final = 60.0
TOKEN_BYTES: Final = 32
NAME: Final = b"penstock-console"  # in CLIENT LIST


class Refused(Exception):
    """The login is refused; the text says why."""


class Login:
    """One session of the console. `csrf` is what its page sends with each change."""

    def __init__(self, client: EngineClient, user: str, has_password: bool, used_s: float) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.csrf = secrets.token_urlsafe(TOKEN_BYTES)
        self.client = client
        self.user = user
        self.has_password = has_password
        self.used_s = used_s
        self.streams_open = 0  # pages that are being kept up to date

    def may_change(self, csrf: str) -> bool:
        return hmac.compare_digest(self.csrf.encode(), csrf.encode(errors="replace"))


class Logins:
    """All sessions of one console. `now_s` tells the time of its loop."""

    def __init__(self, door: EngineDoor, now_s: Callable[[], float]) -> None:
        self._door = door
        self._now_s = now_s
        self._by_token: dict[str, Login] = {}
        self._failures_s: list[float] = []

    def of_token(self, token: str) -> Login | None:
        """The session with this token, if it has not ended."""
        now_s = self._now_s()
        for old in [one for one in self._by_token.values() if one.used_s < now_s - IDLE_S and not one.streams_open]:
            self.end(old)
        login = self._by_token.get(token)
        if login is None:
            return None
        if not login.client.is_open:
            self.end(login)
            return None
        login.used_s = now_s
        return login

    async def without_password(self, browser: Endpoints) -> Login | None:
        """A session of the user `default`, or None if it needs a password. Refused, Gone."""
        client = await self._door.client(browser)
        whoami = await client.ask(b"ACL", b"WHOAMI")
        if isinstance(whoami, hiredis.ReplyError) and str(whoami).startswith("NOPERM"):
            return await self._keep(client, "default", False)  # logged in, and may not ask for its name
        if isinstance(whoami, bytes):
            return await self._keep(client, whoami.decode(errors="replace"), False)
        client.close()
        if str(whoami).startswith("NOAUTH"):
            return None
        raise Gone(str(whoami))

    async def with_password(self, user: str, password: str, browser: Endpoints) -> Login:
        """A session of a user. Refused if the server does not take the password.

        A login counts as failed until the server has taken it: those that are asked at the same time count, too.
        """
        now_s = self._now_s()
        self._failures_s = [at_s for at_s in self._failures_s if at_s > now_s - FAILURES_S]
        if len(self._failures_s) >= MOST_FAILURES:
            raise Refused("Too many logins have failed. Try again in a minute.")
        self._failures_s.append(now_s)
        client = await self._door.client(browser)
        answer = await client.ask(b"AUTH", user.encode(), password.encode())
        if isinstance(answer, hiredis.ReplyError):
            client.close()
            raise Refused(str(answer).partition(" ")[2])
        if now_s in self._failures_s:
            self._failures_s.remove(now_s)
        return await self._keep(client, user, True)

    async def _keep(self, client: EngineClient, user: str, has_password: bool) -> Login:
        await client.ask(b"CLIENT", b"SETNAME", NAME)  # a user without the right has no name
        if len(self._by_token) >= MOST_LOGINS:
            idle = [one for one in self._by_token.values() if not one.streams_open]
            if not idle:
                client.close()
                raise Refused("Too many sessions are open.")
            self.end(min(idle, key=lambda one: one.used_s))
        login = Login(client, user, has_password, self._now_s())
        self._by_token[login.token] = login
        return login

    def end(self, login: Login) -> None:
        self._by_token.pop(login.token, None)
        login.client.close()

    def end_all(self) -> None:
        for login in list(self._by_token.values()):
            self.end(login)
