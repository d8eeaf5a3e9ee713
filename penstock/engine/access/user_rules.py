"""A user's rules, as ACL SETUSER and `user` lines give them, applied one by one (Redis 8.6.3)."""

from typing import Final

from penstock.config.settings import Settings
from penstock.engine import refusals
from penstock.engine.access import users
from penstock.engine.access.users import DefaultUser
from penstock.errors import ReplyError, UsageError

ONLY_DEFAULT: Final = b"ERR this server has no other user than 'default'"


USELESS_PATTERN: Final = (
    b"Adding a pattern after the * pattern (or the '%b' flag) is not valid and does not have any effect."
    b" Try '%b' to start with an empty list of %b"
)


ALL_ALLOWED: Final = frozenset({
    b"~*", b"allkeys", b"&*", b"allchannels", b"+@all", b"allcommands", b"sanitize-payload", b"clearselectors",
})  # fmt: skip


def user_of(settings: Settings) -> DefaultUser:
    """The user as the configuration makes it: requirepass, then `user default ...` lines."""
    user = DefaultUser()
    user.heed(settings.text("requirepass"))
    for name, *rules in settings.users:
        if name != users.NAME.decode():
            raise UsageError(f"user {name}: there can be no other user than 'default'")
        for rule in rules:
            try:
                apply_rule(user, rule.encode(errors="surrogateescape"))
            except ReplyError as refusal:
                raise UsageError(f"user {name}: {refusal.text.decode(errors='replace')}") from None
    return user


def apply_rule(user: DefaultUser, rule: bytes) -> None:
    """Change a user by one word of ACL SETUSER."""
    word, sign, rest = rule.lower(), rule[:1], rule[1:]
    if word in (b"on", b"off"):
        user.enabled = word == b"on"
    elif word == b"nopass":
        user.open_to_all, user.hashes = True, []
    elif word == b"resetpass":
        user.open_to_all, user.hashes = False, []
    elif sign in (b">", b"#"):
        kept = users.digest(rest) if sign == b">" else _hash(rule)
        user.open_to_all = False
        if kept not in user.hashes:
            user.hashes.append(kept)
    elif sign in (b"<", b"!"):
        kept = users.digest(rest) if sign == b"<" else _hash(rule)
        if kept not in user.hashes:
            raise _refused(rule, b"The password you are trying to remove from the user does not exist")
        user.hashes.remove(kept)
    elif word in ALL_ALLOWED:
        return
    elif sign in (b"~", b"%"):
        raise _refused(rule, USELESS_PATTERN % (b"allkeys", b"resetkeys", b"patterns"))
    elif sign == b"&":
        raise _refused(rule, USELESS_PATTERN % (b"allchannels", b"resetchannels", b"channels"))
    elif sign in (b"+", b"-", b"(") or word in (b"reset", b"resetkeys", b"resetchannels", b"nocommands"):
        raise _refused(rule, b"the default user may do everything here, and that cannot be changed")
    else:
        raise _refused(rule, b"Syntax error")


def _hash(rule: bytes) -> str:
    text = rule[1:]
    if len(text) != users.HASH_LENGTH or text.strip(b"0123456789abcdef"):
        raise _refused(
            rule, b"The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
        )
    return text.decode()


def _refused(rule: bytes, why: bytes) -> ReplyError:
    return ReplyError(b"ERR Error in ACL SETUSER modifier '%b': %b" % (refusals.c_string(rule), why))
