"""Times of expiry of a set's members: set, read and removed (common/part_expiry.py). (Redis 8.12, documentation.)

Tests: transcripts set_member_expiry; cases commands/test_set_expiry; law commands/test_set_expiry_beside_naive.
"""

from penstock.commands.common import part_expiry
from penstock.commands.common.overwriting import create
from penstock.commands.common.part_expiry import Options
from penstock.commands.sets.set_members import MEMBERS, limits, read_set, set_at, set_with
from penstock.engine.context import Context
from penstock.engine.part_expiry import notify_changed
from penstock.engine.table.command_table import Handler, command
from penstock.protocol import reply
from penstock.storage.types.sets import Form, Set

# -- setting ---------------------------------------------------------------------------------------------------------


def _setting(rest: bytes) -> Handler:
    def handler(ctx: Context, args: list[bytes]) -> bytes:
        found = set_at(ctx, args[1])
        answer = part_expiry.expire(ctx, args, MEMBERS, found, rest, 0 if rest.endswith(b"AT") else ctx.now_ms)
        if found is not None:
            _leave_integers(ctx, found)
        return answer

    return handler


def _leave_integers(ctx: Context, found: Set) -> None:
    """A set of integers changes its form with the first time of expiry."""
    if found.due is not None and found.form is Form.INTSET:
        limit = limits(ctx)
        found.leave_integers(limit)
        found.expect(len(found), limit)


part_expiry.declare_setting(MEMBERS, "8.12.0", _setting)


@command(
    "SADDEX key condition:[MNX|MXX] "
    "expiration:[EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|KEEPTTL] "
    "members:MEMBERS (nummembers member [member ...])",
    "8.12.0 write denyoom fast | keys 1 RW update",
    "Adds members to a set with a time of expiry; options require that all or none exist.",
    "O(N) where N is the number of members being added.",
)
def saddex(ctx: Context, args: list[bytes]) -> bytes:
    key = args[1]
    options = part_expiry.read_options(ctx, args, b"saddex", MEMBERS, b"KEEPTTL", 1)
    found, members = set_with(ctx, key, options.parts), options.parts
    there = [] if found is None else found.common(members)
    if len(there) < len(members) if options.existence == b"MXX" else there and options.existence:
        return reply.ZERO
    if options.expires and part_expiry.has_passed(ctx, options.when_ms):
        removed = [] if found is None else found.take_out(members)
        if removed and found is not None:
            part_expiry.notify_past(ctx, key, found, removed)
        return reply.ONE
    if found is None:
        found = Set.made(members, limits(ctx))
        create(ctx, key, found)
        changes = len(found)
    else:
        found.expect(len(members), limits(ctx))
        changes = found.add(members, limits(ctx))
    if not options.keeps:
        changes += sum([found.persist(member) for member in there])
    if changes or options.expires:
        notify_changed(ctx, key, found, b"sadd", members, changes)
        _set_times(ctx, key, found, options)
        _log(ctx, key, found, options, there)
    return reply.ONE


def _set_times(ctx: Context, key: bytes, found: Set, options: Options) -> None:
    if options.expires:
        part_expiry.set_times(found, options.parts, options.when_ms)
        _leave_integers(ctx, found)
        notify_changed(ctx, key, found, MEMBERS.event(b"expire"), options.parts, len(options.parts))


def _log(ctx: Context, key: bytes, found: Set, options: Options, there: list[bytes]) -> None:
    """As given; for an older Redis a SADD, and what became of the times as a line that it skips."""
    if ctx.effects.compat.has_8_12:
        ctx.log_request(options.absolute)
        return
    ctx.log(b"SADD", key, *options.parts)
    if options.expires:
        part_expiry.log_expiry(ctx, key, found, MEMBERS, options.when_ms, b"", options.parts)
    elif there and not options.keeps:
        part_expiry.log_persist(ctx, key, found, MEMBERS, there)


# -- reading ---------------------------------------------------------------------------------------------------------


def _reading(rest: bytes) -> Handler:
    def handler(ctx: Context, args: list[bytes]) -> bytes:
        return part_expiry.remaining(ctx, args, MEMBERS, read_set(ctx, args[1]), rest)

    return handler


part_expiry.declare_reading(MEMBERS, "8.12.0", _reading)

# -- removing --------------------------------------------------------------------------------------------------------


@command(
    f"SPERSIST key {MEMBERS.syntax()}",
    "8.12.0 write fast | keys 1 RW update",
    "Removes the times of expiry of members.",
    MEMBERS.complexity(),
)
def spersist(ctx: Context, args: list[bytes]) -> bytes:
    return part_expiry.persist(ctx, args, MEMBERS, set_at(ctx, args[1]))
