"""Reads the arguments of XREAD and XREADGROUP, which share their options (Redis 8.10)."""

from typing import Final

from penstock.engine import arguments, refusals
from penstock.engine.context import Context
from penstock.engine.session import Kept
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.native.build import IS_COMPILED

UNLIMITED: Final = 2**63  # COUNT, MAXCOUNT or MAXSIZE not given
NOT_GIVEN: Final = -1
STREAMS_AT: Final = 1  # where STREAMS is at the earliest
GROUP_STREAMS_AT: Final = 4  # likewise, behind GROUP
KEY_FLAGS: Final = "RO access"
STREAMS: Final = b"STREAMS"  # the last option: keys and ids follow
OPTIONS: Final = OptionTable({
    b"BLOCK": 1, b"CLAIM": 1, b"COUNT": 1, b"GROUP": 2, b"MAXCOUNT": 1, b"MAXSIZE": 1, b"NOACK": 0, STREAMS: 1,
})  # fmt: skip
LONGEST_KEPT_MS: Final = 2**61  # arguments with a longer BLOCK are not reused: it may be out of range the next time


class ReadArguments(Kept):
    """The options, keys and ids of an XREAD or XREADGROUP. `ids_at` is the index of the first id in the request.

    `count` is for each stream; `max_count` and `max_size` are limits for all streams of the call. `is_plain`: the
    request asks for new entries of one stream and nothing else. Must not be changed: sessions reuse their last one.
    """

    __slots__ = (
        "block_ms", "claim_ms", "consumer", "count", "group", "ids", "ids_at", "is_plain", "keys", "max_count",
        "max_size", "no_ack",
    )  # fmt: skip

    def __init__(self) -> None:
        self.count = UNLIMITED
        self.max_count = UNLIMITED
        self.max_size = UNLIMITED
        self.block_ms = NOT_GIVEN
        self.claim_ms = NOT_GIVEN
        self.no_ack = False
        self.group: bytes | None = None
        self.consumer = b""
        self.keys: list[bytes] = []
        self.ids: list[bytes] = []
        self.ids_at = 0
        self.is_plain = False


def read_again(ctx: Context, args: list[bytes]) -> ReadArguments:
    """As `read` for XREADGROUP.

    The session keeps its last arguments, because a worker sends the same request repeatedly.
    """
    session = ctx.session
    known = session.read_words
    if _are_equal(args, session.read_args) and isinstance(known, ReadArguments):
        return known
    options = read(ctx, args, True)
    if options.block_ms <= LONGEST_KEPT_MS:
        session.read_args, session.read_words = args, options
    return options


def _are_equal(args: list[bytes], known: list[bytes]) -> bool:
    """args == known. In the compiled build a third of what that takes, which compares objects."""
    if not IS_COMPILED:
        return args == known
    if len(args) != len(known):
        return False
    for at in range(len(args)):  # noqa: SIM110  a generator is slower
        if args[at] != known[at]:
            return False
    return True


def read(ctx: Context, args: list[bytes], by_group: bool) -> ReadArguments:
    """Read the arguments of a request; ReplyError with Redis's text. `by_group`: XREADGROUP, else XREAD."""
    options = ReadArguments()
    at = 1
    while at < len(args):
        word = args[at].upper()
        words = OPTIONS.words(word, args, at)
        if not words:
            raise refusals.syntax()
        if word == STREAMS:
            break
        if word == b"COUNT":
            options.count = arguments.integer(args[at + 1])
            if options.count <= 0:
                options.count = UNLIMITED
        elif word == b"BLOCK":
            options.block_ms = arguments.timeout_ms(args[at + 1], ctx.now_ms)
        elif word in (b"MAXCOUNT", b"MAXSIZE") and not ctx.hides(word):
            _read_budget(options, word, args[at + 1])
        elif word == b"GROUP":
            _refuse_outside_group(by_group, word)
            options.group, options.consumer = args[at + 1], args[at + 2]
        elif word == b"NOACK":
            _refuse_outside_group(by_group, word)
            options.no_ack = True
        elif word == b"CLAIM" and not ctx.hides(word):
            _refuse_outside_group(by_group, word)
            options.claim_ms = arguments.integer_or(
                args[at + 1], b"ERR min-idle-time is not an integer or out of range"
            )
            if options.claim_ms < 0:
                raise ReplyError(b"ERR min-idle-time must be a positive integer")
        else:
            raise refusals.syntax()
        at += words
    if at >= len(args):
        raise refusals.syntax()
    _read_streams(ctx, options, args, at + 1, by_group)
    if options.max_count < options.count < UNLIMITED:
        raise ReplyError(b"ERR MAXCOUNT must be greater than or equal to COUNT")
    if by_group and options.group is None:
        raise ReplyError(b"ERR Missing GROUP option for XREADGROUP")
    unbounded = options.max_count == options.max_size == UNLIMITED
    options.is_plain = options.ids == [b">"] and by_group and options.claim_ms == NOT_GIVEN and unbounded
    return options


def find_keys(args: list[bytes]) -> list[KeyPlace]:
    """The streams of an XREAD."""
    return _find_keys(args, STREAMS_AT)


def find_keys_by_group(args: list[bytes]) -> list[KeyPlace]:
    """The streams of an XREADGROUP."""
    return _find_keys(args, GROUP_STREAMS_AT)


def _find_keys(args: list[bytes], least: int) -> list[KeyPlace]:
    """The keys after STREAMS; none if STREAMS comes before `least`, where the handler refuses the request, too.

    If there are words that are no options, the first word STREAMS counts, as in Redis, which looks only for that.
    """
    places = OPTIONS.places_of(STREAMS, args, 1)
    if not places:
        places = [at for at in range(least, len(args)) if args[at].upper() == STREAMS]
    if not places or places[0] < least:
        return []
    first = places[0] + 1
    return [KeyPlace(at, KEY_FLAGS.split()) for at in range(first, first + (len(args) - first) // 2)]


def _refuse_outside_group(by_group: bool, word: bytes) -> None:
    if not by_group:
        raise ReplyError(b"ERR The %b option is only supported by XREADGROUP. You called XREAD instead." % word)


def _read_budget(options: ReadArguments, word: bytes, value: bytes) -> None:
    budget = arguments.integer(value)
    if budget < 1:
        raise ReplyError(b"ERR %b must be a positive integer" % word)
    if word == b"MAXCOUNT":
        options.max_count = budget
    else:
        options.max_size = budget


def _read_streams(ctx: Context, options: ReadArguments, args: list[bytes], at: int, by_group: bool) -> None:
    """Read the keys, then as many ids."""
    count = len(args) - at
    if count % 2:
        if by_group:
            raise ReplyError(
                b"ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
            )
        ends = b" or '$'" if ctx.hides(b"+") or ctx.compatibility.is_valkey else b", '+', or '$'"
        text = b"ERR Unbalanced 'xread' list of streams: for each stream key an ID%b must be specified."
        raise ReplyError(text % ends)
    options.ids_at = at + count // 2
    options.keys = args[at : options.ids_at]
    options.ids = args[options.ids_at :]
