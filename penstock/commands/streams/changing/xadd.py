"""XADD and XTRIM: append entries, and trim from the oldest on.

Tests: transcripts streams, xtrim, xadd_idempotent; law test_laws; model storage/test_against_naive.
"""

from typing import Final

from xxhash import xxh3_128_intdigest

from penstock.commands.streams import stream_arguments
from penstock.commands.streams.stream_arguments import REFERENCE_WORDS, TrimArguments
from penstock.engine import refusals
from penstock.engine.aof import group_effects, trim_effects
from penstock.engine.context import Context
from penstock.engine.policies import settling
from penstock.engine.session import Kept
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.native.resp_sizes import words_bytes
from penstock.protocol import reply
from penstock.storage.streams import ids
from penstock.storage.streams.ids import IdHalves, StreamId
from penstock.storage.streams.stream import NO_ID_LEFT, Stream
from penstock.storage.streams.trim import ACKNOWLEDGED, DELETE_REFERENCES, KEEP_REFERENCES, Trim

LARGEST_ENTRY: Final = 1 << 30  # bytes of all fields and values

NO_ID: Final = -1  # instead of a half of an id: the server chooses it
_HALF: Final = 2**64 - 1
_ZERO: Final = 48  # digits
_NINE: Final = 57
STAR_BYTES: Final = len(b"$1\r\n*\r\n")
_NO_TRIM: Final = TrimArguments()  # shared: not changed
_NONE_REMOVED: Final[list[StreamId]] = []  # likewise


class AddArguments(Kept):
    """The arguments of an XADD. `ms` and `seq` are NO_ID for `*`; `seq` alone for `<ms>-*`.

    Shared: not changed once read.
    """

    __slots__ = (
        "fields_at", "id_at", "iid", "make_stream", "ms", "pid", "references", "referred", "seq", "trim",
    )  # fmt: skip

    def __init__(self) -> None:
        self.make_stream = True
        self.references = KEEP_REFERENCES
        self.referred = False  # KEEPREF, DELREF or ACKED was given
        self.trim = _NO_TRIM
        self.pid = b""
        self.iid: bytes | None = None  # None with a pid: computed from the fields and values (IDMPAUTO)
        self.id_at = 0
        self.ms = NO_ID
        self.seq = NO_ID
        self.fields_at = 0

    def is_above(self, last_ms: int, last_seq: int) -> bool:
        """Whether the id is above another one."""
        return self.ms > last_ms or (self.ms == last_ms and self.seq > last_seq)


def _plain() -> AddArguments:
    add = AddArguments()
    add.id_at, add.fields_at = 2, 3
    return add


_PLAIN: Final = _plain()  # `XADD key * field value ...`


def _read_add(args: list[bytes], ctx: Context) -> AddArguments:
    """Read an XADD and refuse errors in Redis's order: options up to the id, then contradictions between options.

    The session keeps the last options, because a producer sends the same ones repeatedly.
    """
    if len(args) & 1 and len(args) > 3:
        word = args[2]
        if word == b"*":
            return _PLAIN
        if word and _ZERO <= word[0] <= _NINE:  # no option begins so
            return _with_own_id(word)
    session = ctx.session
    known = session.add_words
    if isinstance(known, AddArguments) and args[2 : known.fields_at] == session.add_head:
        pairs = len(args) - known.fields_at
        if pairs >= 2 and not pairs & 1:
            return known
    add = _read_options(args, ctx)
    at = add.id_at
    if add.pid and at < len(args) and args[at] != b"*" and not session.privileged:
        raise ReplyError(b"ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs")
    add.trim.refuse_misuse(session.privileged)
    pairs = len(args) - add.fields_at
    if pairs < 2 or pairs % 2:
        raise refusals.arity(b"xadd")
    _refuse_nought(add)
    if args[at] == b"*" and not add.pid and not add.referred:  # the parsed options depend on these words alone
        session.add_head, session.add_words = args[2 : add.fields_at], add
    return add


def _read_options(args: list[bytes], ctx: Context) -> AddArguments:
    """The options up to the id, and the id: the first word that is no option."""
    add = AddArguments()
    last = len(args) - 1
    at = 2
    while at <= last and args[at] != b"*":
        word = args[at].upper()
        if word == b"NOMKSTREAM":
            add.make_stream = False
        elif word in REFERENCE_WORDS and not add.referred and not ctx.hides(word):
            add.referred = True
            add.references = REFERENCE_WORDS[word]
        elif word in (b"MAXLEN", b"MINID", b"LIMIT") and at < last:
            if add.trim is _NO_TRIM:
                add.trim = TrimArguments()
            at = add.trim.read(args, at)
        elif word in (b"IDMP", b"IDMPAUTO") and at + (2 if word == b"IDMP" else 1) <= last and not ctx.hides(word):
            at = _read_producer(add, args, at, word)
        else:
            break
        at += 1
    add.id_at, add.fields_at = at, at + 1
    if at <= last:
        _read_id(add, args[at])
    return add


def _with_own_id(word: bytes) -> AddArguments:
    """The arguments of `XADD key id field value ...`."""
    add = AddArguments()
    add.id_at, add.fields_at = 2, 3
    _read_id(add, word)
    _refuse_nought(add)
    return add


def _refuse_nought(add: AddArguments) -> None:
    if add.ms == 0 and add.seq == 0:
        raise ReplyError(b"ERR The ID specified in XADD must be greater than 0-0")


def _read_producer(add: AddArguments, args: list[bytes], at: int, word: bytes) -> int:
    if add.pid:
        raise ReplyError(b"ERR syntax error, IDMP/IDMPAUTO specified multiple times")
    add.pid = args[at + 1]
    if not add.pid:
        raise ReplyError(b"ERR syntax error, %b requires a non-empty producer ID" % word)
    if word == b"IDMPAUTO":
        return at + 1
    add.iid = args[at + 2]
    if not add.iid:
        raise ReplyError(b"ERR syntax error, IDMP requires a non-empty idempotent ID")
    return at + 2


def _read_id(add: AddArguments, word: bytes) -> None:
    if word == b"*":
        return
    if word.endswith(b"-*"):
        try:
            add.ms = ids.parse(word[:-2] + b"-0") >> 64
        except ValueError:
            raise refusals.bad_id() from None
        return
    add.ms, add.seq = stream_arguments.id_halves(word)


def content_iid(fields: list[bytes]) -> bytes:
    """IDMPAUTO's idempotent id: a hash of 16 bytes that does not depend on the order of the pairs.

    XXH3-128 of each field, its length and its value; the halves summed and xored. (Redis 8.6.3.)

    >>> content_iid([b"f", b"v"]).hex()
    '6e95729ee727f0814aedffba55730079'
    """
    sum_low = sum_high = xor_low = xor_high = 0
    for at in range(0, len(fields), 2):
        field = fields[at]
        digest: int = xxh3_128_intdigest(field + len(field).to_bytes(8, "little") + fields[at + 1])
        low, high = digest & _HALF, digest >> 64
        sum_low, sum_high = (sum_low + low) & _HALF, (sum_high + high) & _HALF
        xor_low, xor_high = xor_low ^ low, xor_high ^ high
    return (sum_low ^ _rotated(xor_high)).to_bytes(8, "little") + (sum_high ^ _rotated(xor_low)).to_bytes(8, "little")


def _rotated(half: int) -> int:
    """A 64-bit number rotated left by one bit."""
    return (half << 1 | half >> 63) & _HALF


@command(
    "XADD key [NOMKSTREAM@6.2.0] condition:[KEEPREF@~8.2.0|DELREF@~8.2.0|ACKED@~8.2.0] "
    "idmp:[idmpauto-with-pid:(idmpauto-token:IDMPAUTO@~8.6.0, pid)|"
    "idmp-with-pid-iid:(idmp-token:IDMP@~8.6.0, pid iid)] "
    "trim:[strategy:<MAXLEN|MINID@6.2.0> operator:[equal:=|approximately:~] threshold [LIMIT count@6.2.0]] "
    "id-selector:<auto-id:*|id> data:(field value) [field value ...]",
    "5.0.0 write denyoom fast | "
    "keys 1 RW update # UPDATE instead of INSERT because of the optional trimming feature | "
    "tips nondeterministic_output",
    "Appends an entry to a stream, which is created if it does not exist.",
    "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
    history=(
        ("6.2.0", "Added the `NOMKSTREAM` option, `MINID` trimming strategy and the `LIMIT` option."),
        ("7.0.0", "Added support for the `<ms>-*` explicit ID form."),
        ("8.2.0", "Added the `KEEPREF`, `DELREF` and `ACKED` options."),
    ),
)
def xadd(ctx: Context, args: list[bytes]) -> bytes:
    privileged = ctx.session.privileged
    add = _read_add(args, ctx)
    key = args[1]
    stream = ctx.stream(key)
    is_new = stream is None
    if stream is None:
        if not add.make_stream:
            return reply.null(ctx.resp3)
        stream = ctx.form_limits.new_stream()
    fields = args[add.fields_at :]
    if add.pid:
        if not privileged:
            stream.producers.sweep(ctx.now_ms)
        iid = add.iid if add.iid is not None else content_iid(fields)
        recorded = stream.producers.find(add.pid, iid)
        if privileged and _replays_duplicate(add, stream, recorded):
            stream.producers.duplicates += 1
            return reply.null(ctx.resp3)
        if recorded is not None and not privileged:
            return _reply_duplicate(ctx, args, add, stream, recorded)
    else:
        iid = b""
    ms, seq = stream.next_id(ctx.now_ms) if add.ms == NO_ID else _given_id(add, stream)
    if ms < 0:
        raise _exhausted()
    id_reply = ctx.id_reply(ms, seq)
    text = ctx.text
    words_at = len(text) - words_bytes(fields) if text else 0
    words = text[words_at:] if text else reply.words(fields)
    entry = b"*2\r\n%b*%d\r\n%b" % (id_reply, len(fields), words)  # as entries.encode makes it
    if len(entry) > LARGEST_ENTRY and sum([len(word) for word in fields]) > LARGEST_ENTRY:
        if is_new:  # it stays, as in Redis, which does not log it
            _create(ctx, key, stream)
            ctx.log(b"XGROUP", b"CREATE", key, b"g", b"0", b"MKSTREAM")
            ctx.log(b"XGROUP", b"DESTROY", key, b"g")
        raise ReplyError(b"ERR Elements are too large to be stored")
    if is_new:
        _create(ctx, key, stream)
    stream.append(ms, seq, entry, fields)
    if add.pid:
        stream.producers.record(add.pid, iid, stream.last_id)
    ctx.dirty += 1
    ctx.touch(key)
    ctx.signal(key)
    ctx.event("t", b"xadd", key)
    removed_ids = _NONE_REMOVED
    trim: Trim | None = None
    if add.trim.given:
        removed_ids = []
        trim = add.trim.trim(add.references, stream.limits.max_entries)
        if stream.trim(trim, removed_ids):
            ctx.event("t", b"xtrim", key)
    if ctx.effects.log is not None:
        if text and not (add.pid or add.referred):
            ctx.effects.add_packed(ctx.db_index, _with_id(text, words_at, args, add, stream, id_reply))
        else:
            _log_add(ctx, args, add, stream, id_reply, words, removed_ids)
    if trim is not None:
        trim_effects.drop_deleted_references(ctx, key, stream, trim)
    if stream.policies is not None:
        settling.apply_policies(ctx, key, stream)
    return id_reply


def _create(ctx: Context, key: bytes, stream: Stream) -> None:
    ctx.db.put(key, stream)
    ctx.event("n", b"new", key)


def _given_id(add: AddArguments, stream: Stream) -> IdHalves:
    """The id of the new entry, of which the request has a half at least."""
    if stream.last_ms == _HALF and stream.last_seq == _HALF:
        raise _exhausted()
    if add.seq == NO_ID:
        ms, seq = stream.next_id_of(add.ms)
    elif add.is_above(stream.last_ms, stream.last_seq):
        ms, seq = add.ms, add.seq
    else:
        ms, seq = NO_ID_LEFT
    if ms < 0:
        raise ReplyError(b"ERR The ID specified in XADD is equal or smaller than the target stream top item")
    return ms, seq


def _exhausted() -> ReplyError:
    return ReplyError(b"ERR The stream has exhausted the last possible ID, unable to add more items")


def _reply_duplicate(ctx: Context, args: list[bytes], add: AddArguments, stream: Stream, recorded: StreamId) -> bytes:
    """A duplicate: append nothing, count it, and log it with the recorded id, so that a replay counts it, too."""
    stream.producers.duplicates += 1
    id_text = ids.text(recorded)
    if ctx.effects.compat.idempotence:
        ctx.log(*args[: add.id_at], id_text, *args[add.fields_at :])
    return reply.bulk(id_text)


def _replays_duplicate(add: AddArguments, stream: Stream, recorded: StreamId | None) -> bool:
    """Whether a line of the log records a duplicate. Redis logs it with `*`, we log it with the recorded id.

    An explicit id above the last one is always an append: iids expire without a line in the log.
    """
    if add.seq == NO_ID or not add.is_above(stream.last_ms, stream.last_seq):
        return True
    return recorded is not None and ids.halves(recorded) == (add.ms, add.seq)


def _log_add(
    ctx: Context,
    args: list[bytes],
    add: AddArguments,
    stream: Stream,
    id_reply: bytes,
    words: bytes,
    removed_ids: list[StreamId],
) -> None:
    """Log the request with the id that was chosen, and with a trim that has the same result when replayed.

    words: the fields and values, packed.
    """
    trim, compat = add.trim, ctx.effects.compat
    head = args[: add.id_at]
    is_acked_trim = trim.given and add.references == ACKNOWLEDGED
    is_older = (add.pid and not compat.idempotence) or (add.referred and not compat.references)
    if is_older:  # a Redis without some of the options gets a plain XADD, then its other effects
        head = [b"XADD", args[1], *(_exact_trim(args, trim, stream) if trim.given and not is_acked_trim else [])]
    elif is_acked_trim:
        producer = [b"IDMP", add.pid, add.iid or content_iid(args[add.fields_at :])] if add.pid else []
        head = [*args[:2], *producer]
    elif trim.approximate:
        _make_exact(head, trim, stream)
    if add.seq != NO_ID:
        id_reply = reply.bulk(args[add.id_at])  # as it was given
    header = reply.array_header(len(head) + 1 + len(args) - add.fields_at)
    ctx.effects.add_packed(ctx.db_index, b"".join([header, reply.words(head), id_reply, words]))
    if is_older:
        _log_removed(ctx, args[1], stream, add.references, removed_ids)
    elif is_acked_trim:
        trim_effects.log_acked_trim(ctx, args[1], stream, removed_ids, True)


def _with_id(
    text: bytes, words_at: int, args: list[bytes], add: AddArguments, stream: Stream, id_reply: bytes
) -> bytes:
    """The line of the log as `_log_add` makes it, from the bytes of the request, whose fields begin at words_at."""
    trim = add.trim
    if add.seq != NO_ID and not trim.approximate:
        return text
    id_at = words_at - (STAR_BYTES if add.ms == NO_ID else words_bytes(args[add.id_at : add.fields_at]))
    if add.seq != NO_ID:  # as it was given
        id_reply = text[id_at:words_at]
    if not trim.approximate:
        return b"%b%b%b" % (text[:id_at], id_reply, text[words_at:])
    sign_at = id_at - words_bytes(args[trim.sign_at : add.id_at])
    behind_trim = sign_at + words_bytes(args[trim.sign_at : trim.threshold_at + 1])
    exact = reply.bulk(_exact_threshold(trim, stream))
    before, between = text[:sign_at], text[behind_trim:id_at]
    return b"%b$1\r\n=\r\n%b%b%b%b" % (before, exact, between, id_reply, text[words_at:])


def _exact_trim(args: list[bytes], trim: TrimArguments, stream: Stream) -> list[bytes]:
    """The words of an equivalent trim that every Redis understands."""
    strategy = b"MAXLEN" if trim.by_length else b"MINID"
    if trim.approximate:
        return [strategy, b"=", _exact_threshold(trim, stream)]
    return [strategy, b"=", args[trim.threshold_at]]


def _log_removed(ctx: Context, key: bytes, stream: Stream, references: int, removed_ids: list[StreamId]) -> None:
    """Log what a trim did besides removing the oldest entries."""
    if references == ACKNOWLEDGED:
        trim_effects.log_acked_trim(ctx, key, stream, removed_ids, True)
    elif references == DELETE_REFERENCES:
        group_effects.log_dropped_references(ctx, key, stream, removed_ids)


def _make_exact(effect: list[bytes], trim: TrimArguments, stream: Stream) -> None:
    """Replace `~` by `=`, and the threshold by one with which an exact trim has the same result."""
    effect[trim.sign_at] = b"="
    effect[trim.threshold_at] = _exact_threshold(trim, stream)


def _exact_threshold(trim: TrimArguments, stream: Stream) -> bytes:
    if trim.by_length:
        return b"%d" % stream.length
    return ids.text(stream.first_id if stream.length else ids.MAX)


@command(
    "XTRIM key "
    "trim:(strategy:<MAXLEN|MINID@6.2.0> operator:[equal:=|approximately:~] threshold [LIMIT "
    "count@6.2.0] condition:[KEEPREF@~8.2.0|DELREF@~8.2.0|ACKED@~8.2.0])",
    "5.0.0 write | keys 1 RW delete | tips nondeterministic_output",
    "Removes the oldest entries of a stream.",
    "O(N), with N being the number of evicted entries. Constant times are very small "
    "however, since entries are organized in macro nodes containing multiple entries that "
    "can be released with a single deallocation.",
    history=(
        ("6.2.0", "Added the `MINID` trimming strategy and the `LIMIT` option."),
        ("8.2.0", "Added the `KEEPREF`, `DELREF` and `ACKED` options."),
    ),
)
def xtrim(ctx: Context, args: list[bytes]) -> bytes:
    trim, references = _read_trim(args, ctx)
    key = args[1]
    stream = ctx.stream(key)
    if stream is None:
        return reply.ZERO
    removed_ids: list[StreamId] = []
    wanted = trim.trim(references, stream.limits.max_entries)
    removed = stream.trim(wanted, removed_ids)
    if removed:
        ctx.dirty += removed
        ctx.touch(key)
        ctx.event("t", b"xtrim", key)
        if references == ACKNOWLEDGED:
            trim_effects.log_acked_trim(ctx, key, stream, removed_ids, True)
        elif not ctx.effects.compat.references:
            ctx.log(b"XTRIM", key, *_exact_trim(args, trim, stream))
            _log_removed(ctx, key, stream, references, removed_ids)
        elif ctx.effects.log is not None:
            effect = list(args)
            if trim.approximate:
                _make_exact(effect, trim, stream)
            ctx.log(*effect)
    trim_effects.drop_deleted_references(ctx, key, stream, wanted)
    if stream.policies is not None:
        settling.trimmed_by_hand(ctx, key, stream)
    return reply.integer(removed)


def _read_trim(args: list[bytes], ctx: Context) -> tuple[TrimArguments, int]:
    """Read an XTRIM: the same options as XADD's, but an unknown word is a syntax error."""
    trim = TrimArguments()
    references = KEEP_REFERENCES
    referred = False
    last = len(args) - 1
    at = 2
    while at <= last:
        word = args[at].upper()
        if word in REFERENCE_WORDS and not referred and not ctx.hides(word):
            referred = True
            references = REFERENCE_WORDS[word]
        elif word in (b"MAXLEN", b"MINID", b"LIMIT") and at < last:
            at = trim.read(args, at)
        else:
            raise refusals.syntax()
        at += 1
    if not trim.given and not trim.limit:
        raise ReplyError(b"ERR syntax error, XTRIM must be called with a trimming strategy")
    trim.refuse_misuse(ctx.session.privileged)
    return trim, references
