"""The requests of a replica to its master: SYNC, PSYNC, REPLCONF (Redis 8.6.3).

Tests: transcripts failover; cases replication/test_master, replication/test_replica_of_engine.
"""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.aof import aof_compat
from penstock.engine.context import Context
from penstock.engine.replication import failover, role, stream_versions
from penstock.engine.replication.replica import NO_ACK, Replica
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply

LONGEST_ADDRESS: Final = 255
OUT_OF_RANGE: Final = b"ERR value is out of range, value must between 0 and 1"
ACK: Final = b"ACK"
FACK: Final = b"FACK"
FAILOVER_AT: Final = 3  # the word of PSYNC that asks to take over


@command(
    "SYNC",
    "1.0.0 admin noscript no_async_loading no_multi | traits feeds_replicas for_replicas",
    "Sends a copy of everything, then every change. Replicas ask for it.",
    "",
)
def sync(ctx: Context, args: list[bytes]) -> bytes:
    return _arrive(ctx, b"", NO_ACK, is_plain_sync=True)


@command(
    "PSYNC replicationid offset",
    "2.8.0 admin noscript no_async_loading no_multi | traits feeds_replicas for_replicas | arity -3",
    "Sends every change from an offset on, or a copy of everything before. Replicas ask for it.",
    "",
)
def psync(ctx: Context, args: list[bytes]) -> bytes:
    if not ctx.session.is_replica and len(args) > FAILOVER_AT and args[FAILOVER_AT].upper() == b"FAILOVER":
        _take_over(ctx, args[1])
    return _arrive(ctx, args[1], arguments.integer(args[2]), is_plain_sync=False)


def _take_over(ctx: Context, asked_id: bytes) -> None:
    """Our master asks us to be master in its place; it has held writes back until we had all (FAILOVER)."""
    replication = ctx.replication
    if replication.master is None:
        raise ReplyError(b"ERR PSYNC FAILOVER can't be sent to a master.")
    if asked_id != replication.id.encode():
        raise ReplyError(b"ERR PSYNC FAILOVER replid must match my replid.")
    log = ctx.persistence.log
    if log is not None and log.lacks_base:
        raise ReplyError(b"NOMASTERLINK Can't take over while the copy of my master's data is not on the disk")
    replication.failover.report(f"{ctx.session.address} asks this replica to take over: it is a master now.")
    role.lead(ctx.server)


def _arrive(ctx: Context, asked_id: bytes, asked_offset: int, is_plain_sync: bool) -> bytes:
    """The server answers it: an answer of ours would have to stand before what the server sends."""
    if ctx.session.is_replica:
        return reply.NO_REPLY
    master = ctx.replication.master
    if failover.is_running(ctx.server):
        raise ReplyError(b"NOMASTERLINK Can't SYNC while failing over")
    if master is not None and not master.is_up:
        raise ReplyError(b"NOMASTERLINK Can't SYNC while not connected with my master")
    ctx.replication.arrive(ctx.session, asked_id, asked_offset, is_plain_sync)
    ctx.effects.compat = aof_compat.within_words(ctx.settings, ctx.replication.words)
    return reply.NO_REPLY


@command(
    "REPLCONF",
    "3.0.0 admin noscript loading stale allow_busy | traits for_replicas | arity -1 | doc_flags syscmd",
    "Tells a master what its replica is and how far it is.",
)
def replconf(ctx: Context, args: list[bytes]) -> bytes:
    if not len(args) & 1:
        raise refusals.syntax()
    replication = ctx.replication
    for at in range(1, len(args), 2):
        option, word = args[at].upper(), args[at + 1]
        if option in (ACK, b"GETACK"):
            if option == ACK and ctx.session.is_replica:
                replication.acknowledged(replication.state_of(ctx.session), *_acked(args[at:]))
                ctx.waiting.answer_waits()
            return reply.NO_REPLY
        _note(replication.state_of(ctx.session), option, word, args[at])
    return reply.OK


def _acked(words: list[bytes]) -> tuple[int, int]:
    """The offsets of `ACK n [FACK n]`: applied, and on the replica's disk. A word that is no number is ignored."""
    applied = synced = NO_ACK
    for at in range(0, len(words) - 1, 2):
        name, number = words[at].upper(), words[at + 1]
        if name == ACK and number.isdigit():
            applied = int(number)
        elif name == FACK and number.isdigit():
            synced = int(number)
    return applied, synced


def _note(found: Replica, option: bytes, word: bytes, typed: bytes) -> None:
    """Note a replica's port, address or capability. Unknown capabilities are ignored."""
    if option == b"LISTENING-PORT":
        found.port = arguments.integer(word)
    elif option == b"IP-ADDRESS":
        if len(word) > LONGEST_ADDRESS:
            raise ReplyError(b"ERR REPLCONF ip-address provided by replica instance is too long: %d bytes" % len(word))
        found.host = word.decode(errors="surrogateescape")
    elif option == b"CAPA":
        found.takes_eof = found.takes_eof or word == b"eof"
        found.takes_new_ids = found.takes_new_ids or word == b"psync2"
        found.kind = stream_versions.offered(found.kind, word)
    elif option == b"VERSION":  # sent by Valkey
        found.kind = stream_versions.named(found.kind, word)
    elif option == b"RDB-ONLY":
        found.wants_only_snapshot = _is_one(word)
    elif option == b"RDB-FILTER-ONLY":
        if word not in (b"", b"functions"):
            raise ReplyError(b"ERR Unsupported rdb-filter-only option: " + word)
        found.wants_only_functions = word == b"functions"
    else:
        raise ReplyError(b"ERR Unrecognized REPLCONF option: " + typed)


def _is_one(word: bytes) -> bool:
    number = arguments.integer(word)
    if number not in (0, 1):
        raise ReplyError(OUT_OF_RANGE)
    return number == 1
