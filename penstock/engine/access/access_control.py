"""The users of a server, their rights, and the effect of a change on connected clients."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from penstock.clock import Clock
from penstock.config.settings import Settings
from penstock.engine import refusals
from penstock.engine.access import acl_file, users
from penstock.engine.access.access_log import AccessLog
from penstock.engine.access.command_catalog import CommandCatalog
from penstock.engine.access.rule_error import RuleError
from penstock.engine.access.selector import Denial, Reason, has_spaces
from penstock.engine.access.user_rules import Unmatched, UserRules, with_selectors
from penstock.engine.access.users import User
from penstock.engine.arguments import is_integer
from penstock.engine.session import Session
from penstock.engine.table.row import FEEDS_MONITORS, FEEDS_REPLICAS, Row
from penstock.engine.telemetry.statistics import Statistics
from penstock.errors import ReplyError, UsageError, shortened
from penstock.protocol.request_batch import RequestBatch

WRONG_PASSWORD: Final = b"WRONGPASS invalid username-password pair or user is disabled."
IN_EXEC: Final = (
    b"NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call."
    b" This command is no longer allowed for the following reason: %b"
)
IN_SCRIPT: Final = b"ERR ACL failure in script: "
NO_DATABASE: Final = b"No permissions to access database"
NO_KEY: Final = b"No permissions to access a key"
EXEC_REASONS: Final = {
    Reason.DATABASE: b"no permission",
    Reason.COMMAND: b"no permission to execute the command or subcommand",
    Reason.KEY: b"no permission to touch the specified keys",
    Reason.CHANNEL: b"no permission to access one of the channels used as arguments to the command",
}
LOG_REASONS: Final = {
    Reason.DATABASE: b"database",
    Reason.COMMAND: b"command",
    Reason.KEY: b"key",
    Reason.CHANNEL: b"channel",
}
BOTH_SOURCES: Final = (
    "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid. This"
    " setup is very likely to lead to configuration errors and security holes, please define either an ACL file or"
    " declare users directly in your redis.conf, but not both."
)


class Sessions:
    """The sessions of a server, as a change of users concerns them (server_state.py)."""

    def every(self) -> list[Session]:
        """Those of all clients."""
        raise NotImplementedError

    def close(self, session: Session) -> None:
        """Close a connection; the one that sent the request being run, when its reply has been sent."""
        raise NotImplementedError

    def is_in_exec(self, session: Session) -> bool:
        """Whether EXEC is running a request of it."""
        raise NotImplementedError

    def drop_cache(self, session: Session) -> None:
        """Have a client that tracks keys forget all that it has read: it may read other keys from now on."""
        raise NotImplementedError


class AccessControl:
    """Every user of one server, by name.

    Users are never changed while sessions have them: a change makes a new one, which takes the old one's place in all
    its sessions. Whether a session's requests are looked at is the bit RESTRICTED of its state (state.py).
    """

    __slots__ = (
        "_clock", "_rules", "_sessions", "_settings", "_statistics", "catalog", "log", "report", "users",
    )  # fmt: skip

    def __init__(
        self, settings: Settings, clock: Clock, catalog: CommandCatalog, sessions: Sessions, statistics: Statistics
    ) -> None:
        """UsageError if the `user` lines or the ACL file are wrong."""
        self._clock = clock
        self._sessions = sessions
        self._statistics = statistics
        self._settings = settings
        self.catalog = catalog
        self._rules = UserRules(self.catalog, settings.number("databases"), settings.passes_for_valkey)
        self.log = AccessLog(settings)
        self.report: Callable[[str], None] = _discard  # takes warnings for the server's log
        self.users: dict[bytes, User] = {}
        self._choose_channels()
        settings.watch("acl-pubsub-default", self._choose_channels)
        self._begin()
        settings.watch("requirepass", self._follow_requirepass)

    # -- where users come from --------------------------------------------------------------------------------------

    def _choose_channels(self) -> None:
        self._rules.all_channels = self._settings.text("acl-pubsub-default") == "allchannels"

    def _begin(self) -> None:
        settings = self._settings
        default = self._rules.first_default()
        self.users = {users.DEFAULT: default}
        self._take_password(default)
        self._seal(default)
        if settings.text("aclfile"):
            if settings.users:
                raise UsageError(BOTH_SOURCES)
            try:
                self._take_all(self._read_file())
            except ReplyError as refusal:
                text = refusal.text.removeprefix(b"ERR ").decode(errors="surrogateescape")
                raise UsageError(f"Aborting Redis startup because of ACL errors: {shortened(text)}") from None
        for words in settings.users:
            name, *rules = [word.encode(errors="surrogateescape") for word in words]
            if has_spaces(name):
                raise UsageError("Spaces not allowed in ACL usernames")
            self.users[name] = self._from_line(name, rules)

    def _from_line(self, name: bytes, rules: Sequence[bytes]) -> User:
        """A `user` line of the configuration. It says everything of its user: also `default` begins without rights."""
        user = self._rules.new_user(name)
        shown = shortened(name.decode(errors="replace"))
        try:
            for rule in with_selectors(rules):
                try:
                    self._rules.apply(user, rule)
                except RuleError as error:
                    wrong = shortened(rule.decode(errors="replace"))
                    raise UsageError(
                        f"Error loading ACL rule '{wrong}' for the user named '{shown}': {error.reason.decode()}"
                    ) from None
        except Unmatched:
            raise UsageError(f"Error in user declaration '{shown}': Wrong format") from None
        self._seal(user)
        return user

    def _follow_requirepass(self) -> None:
        """CONFIG SET requirepass: what ACL SETUSER did to the passwords of `default` is forgotten (Redis 8.6.3)."""
        default = self.users[users.DEFAULT].copy()
        self._take_password(default)
        self._put(default)

    def _take_password(self, default: User) -> None:
        password = self._settings.text("requirepass")
        default.open_to_all = not password
        default.hashes = [users.digest(_raw(password))] if password else []

    # -- the ACL file -----------------------------------------------------------------------------------------------

    def _path(self) -> Path:
        """A relative path begins at `dir`, as in Redis, which changes its directory."""
        return Path(self._settings.text("dir")) / self._settings.text("aclfile")

    def _read_file(self) -> list[User]:
        """The users in the ACL file; ReplyError with all that is wrong with it."""
        name = self._settings.text("aclfile")
        try:
            text = self._path().read_bytes()
        except OSError as problem:
            raise ReplyError(
                b"ERR Error loading ACLs, opening file '%b': %b" % (_raw(name), _raw(problem.strerror or ""))
            ) from None
        return acl_file.read(text, _raw(name), self._rules)

    def load(self) -> None:
        """ACL LOAD. Clients of users that are gone are closed; the others have the new rules at once."""
        self._require_file()
        before = self.users
        self._take_all(self._read_file())
        for name, user in before.items():
            successor = self.users.get(name)
            if successor is None:
                self._close_all(user)
            else:
                self._hand_over(user, successor)

    def _take_all(self, loaded: Iterable[User]) -> None:
        """These are the users from now on; where they have none, `default` has all rights again."""
        found = {user.name: user for user in loaded}
        if users.DEFAULT not in found:
            found[users.DEFAULT] = self._rules.first_default()
        for user in found.values():
            self._seal(user)
        self.users = found

    def save(self) -> None:
        """ACL SAVE: write all users into the ACL file, by replacing it as a whole. OSError if that fails."""
        self._require_file()
        acl_file.write(self._path(), self.descriptions())

    def _require_file(self) -> None:
        if not self._settings.text("aclfile"):
            raise ReplyError(acl_file.NO_FILE)

    def warning(self) -> str:
        """A sentence about a setting that may be a mistake of the operator; empty if there is none."""
        if self._settings.text("requirepass") and self.default.needs_no_login():
            return "requirepass is set, but the rules of the user default say that it needs no password"
        return ""

    # -- users ------------------------------------------------------------------------------------------------------

    @property
    def default(self) -> User:
        return self.users[users.DEFAULT]

    def names(self) -> list[bytes]:
        return sorted(self.users)

    def descriptions(self) -> list[bytes]:
        """Lines of ACL LIST."""
        is_valkey = self._settings.passes_for_valkey
        return [self.users[name].description(is_valkey) for name in self.names()]

    def lines_for_configuration(self) -> list[str] | None:
        """The `user` lines that CONFIG REWRITE writes; None if the ACL file has the users.

        None are needed while `default` is what a start without any makes it.
        """
        if self._settings.text("aclfile"):
            return None
        default = self._rules.first_default()
        self._take_password(default)
        if self.descriptions() == [default.description(self._settings.passes_for_valkey)]:
            return []
        return [line.decode(errors="surrogateescape") for line in self.descriptions()]

    def change(self, name: bytes, rules: Sequence[bytes]) -> None:
        """ACL SETUSER: all rules, or none. ReplyError if one is wrong."""
        if has_spaces(name):
            raise ReplyError(b"ERR Usernames can't contain spaces or null characters")
        try:
            words = with_selectors(rules)
        except Unmatched as mistake:
            raise ReplyError(
                b"ERR Unmatched parenthesis in acl selector starting at '%b'." % refusals.c_string(mistake.beginning)
            ) from None
        known = self.users.get(name)
        user = self._rules.new_user(name) if known is None else known.copy()
        for rule in words:
            try:
                self._rules.apply(user, rule)
            except RuleError as error:
                shown = refusals.c_string(rule)
                raise ReplyError(b"ERR Error in ACL SETUSER modifier '%b': %b" % (shown, error.reason)) from None
        self._put(user)

    def delete(self, names: Sequence[bytes]) -> int:
        """ACL DELUSER: how many there were. Their clients are closed."""
        if users.DEFAULT in names:
            raise ReplyError(b"ERR The 'default' user cannot be removed")
        count = 0
        for name in names:
            user = self.users.pop(name, None)
            if user is not None:
                count += 1
                self._close_all(user)
        return count

    def _seal(self, user: User) -> None:
        user.seal(self.catalog)

    def _put(self, user: User) -> None:
        """A user is new, or takes the place of the one with its name."""
        self._seal(user)
        before = self.users.get(user.name)
        self.users[user.name] = user
        if before is not None:
            self._hand_over(before, user)

    # -- their sessions ---------------------------------------------------------------------------------------------

    def _hand_over(self, before: User, after: User) -> None:
        """Sessions of a user have its new rules at once. Those that may not get what they are sent are closed."""
        for session in self._sessions.every():
            if session.user is before:
                self._become(session, after)
                if not (_may_listen(after, session) and self._may_be_fed(after, session)):
                    self._sessions.close(session)

    def _may_be_fed(self, user: User, session: Session) -> bool:
        """Whether a user may keep the requests that its session monitors, and the replication stream that it is sent.

        Redis 8.6.3 goes on to send both.
        """
        feeds = [FEEDS_MONITORS] if session.monitors else []
        feeds += [FEEDS_REPLICAS] if session.is_replica else []
        return all(
            any(user.denial(row, [row.label], session.db_index) is None for row in self.catalog.with_trait(feed))
            for feed in feeds
        )

    def _become(self, session: Session, user: User) -> None:
        """A session acts as a user from now on. It is no longer notified of keys that it may not use now."""
        before = session.user
        session.set_user(user)
        if session.tracking is not None and before is not user and before.key_rules() != user.key_rules():
            self._sessions.drop_cache(session)

    def _close_all(self, user: User) -> None:
        for session in self._sessions.every():
            if session.user is user:
                self._sessions.close(session)
                session.set_user(self.default)
                session.authenticated = False

    def begin(self, session: Session) -> None:
        """A client is new, or begins anew (RESET): it acts as `default`, if that needs no password."""
        session.set_user(self.default)
        session.authenticated = self.default.needs_no_login()

    def log_in(self, session: Session, name: bytes, password: bytes, asked_by: bytes, now_ms: int) -> None:
        """Authenticate a session as a user; ReplyError WRONGPASS if that fails, and the session's user stays.

        asked_by: the command, as typed.
        """
        user = self.users.get(name)
        if user is None:
            users.digest(password)  # an unknown user takes no less time
        if user is None or not user.admits(password):
            self._statistics.denied_auth += 1
            self.log.note(session, b"auth", self._context(session), asked_by, name, now_ms)
            raise ReplyError(WRONG_PASSWORD)
        self._become(session, user)
        session.authenticated = True

    def log_in_by_certificate(self, session: Session, name: bytes, now_ms: int) -> None:
        """A client has shown a certificate with a name: it acts as that user, if there is one that is on."""
        user = self.users.get(name)
        if user is not None and user.enabled:
            session.set_user(user)
            session.authenticated = True
            return
        self._statistics.denied_certificate += 1
        self.log.note(session, b"tls-cert", b"toplevel", b"", name, now_ms)

    # -- requests ---------------------------------------------------------------------------------------------------

    def admit(self, session: Session, row: Row, request: list[bytes]) -> None:
        """Refuse a request that the session's user may not run. Asked where the state has the bit RESTRICTED."""
        denial = session.user.denial(row, request, session.next_db_index)
        if denial is not None:
            self._note(session, self._context(session), row, request, denial)
            raise ReplyError(b"NOPERM " + refusal_text(session.user, row, denial))

    def same_verdict(self, session: Session, row: Row, batch: RequestBatch, at: int) -> bool:
        """Whether the requests of a batch behind a place are allowed if that one is. O(1), or O(requests)."""
        user, db_index = session.user, session.next_db_index
        if user.allows_anyhow(row) or self.catalog.same_verdict(row, batch) or batch.is_one_repeated():
            return True
        return all(user.denial(row, batch.request(other), db_index) is None for other in range(at + 1, batch.count))

    def follow_queue(self, session: Session, row: Row, batch: RequestBatch) -> None:
        """Requests that select databases are queued: those behind them in the transaction are judged there.

        (Valkey 9.1.2.)
        """
        assert row.databases is not None, "a command that selects a database names it"
        for at in range(batch.count):
            request = batch.request(at)
            word = request[row.databases(request)[0]]
            if is_integer(word) and 0 <= int(word) < self._settings.number("databases"):
                session.queue_selects(int(word))

    def refusal_in_exec(self, session: Session, row: Row, request: list[bytes]) -> bytes | None:
        """The error for a queued request that is not allowed any more when EXEC runs it."""
        denial = session.user.denial(row, request, session.db_index)
        if denial is None:
            return None
        self._note(session, b"multi", row, request, denial)
        return IN_EXEC % EXEC_REASONS[denial.reason]

    def refusal_in_script(self, caller: Session, row: Row, request: list[bytes], db_index: int) -> bytes | None:
        """The error for a request of a script, in a database, that the user of its caller may not run."""
        denial = caller.user.denial(row, request, db_index)
        if denial is None:
            return None
        self._statistics.of(row).rejected += 1
        self._note(caller, b"lua", row, request, denial)
        return IN_SCRIPT + refusal_text(caller.user, row, denial)

    def admit_link(self, session: Session, row: Row, request: list[bytes], key: bytes, targets: list[bytes]) -> None:
        """Refuse a request that would have the server move entries from a key to targets, if its user may not do that.

        Asked by the handler, where the state has the bit RESTRICTED: the words of the request do not name the targets.
        """
        refused = session.user.refused_link(row, request, session.db_index, key, targets)
        if refused is None:
            return
        caller = session.asks_for
        context = self._context(session) if caller is None else b"lua"
        self._note_refusal(session if caller is None else caller, context, Reason.KEY, refused)
        raise ReplyError((b"NOPERM " if caller is None else IN_SCRIPT) + NO_KEY)

    def _note(self, session: Session, context: bytes, row: Row, request: list[bytes], denial: Denial) -> None:
        subject = request[denial.position] if denial.position else row.label
        self._note_refusal(session, context, denial.reason, subject)

    def _note_refusal(self, session: Session, context: bytes, reason: Reason, subject: bytes) -> None:
        self._statistics.count_denial(reason)
        now_ms = self._clock.now_us() // 1000
        self.log.note(session, LOG_REASONS[reason], context, subject, session.user.name, now_ms)

    def _context(self, session: Session) -> bytes:
        """Where a refused request stands, in the words of ACL LOG."""
        return b"multi" if session.queue is not None or self._sessions.is_in_exec(session) else b"toplevel"


def _discard(text: str) -> None:
    """Until the server gives a function that takes them."""


def refusal_text(user: User, row: Row, denial: Denial) -> bytes:
    """The refusal without its code."""
    if denial.reason is Reason.DATABASE:
        return NO_DATABASE
    if denial.reason is Reason.KEY:
        return NO_KEY
    if denial.reason is Reason.CHANNEL:
        return b"No permissions to access a channel"
    return b"User %b has no permissions to run the '%b' command" % (user.name, row.label)


def _may_listen(user: User, session: Session) -> bool:
    """Whether a user may keep what a session of it listens to."""
    return (
        all(user.allows_channel(channel, False) for channel in session.channels)
        and all(user.allows_channel(channel, False) for channel in session.shard_channels)
        and all(user.allows_channel(pattern, True) for pattern in session.patterns)
    )


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
