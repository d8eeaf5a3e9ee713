"""Every option of the sink, as one row; options that exclude each other are refused when a query starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.pipeline.connector.connection.connection_options import Servers, read_servers
from penstock.pipeline.connector.connection.option_reader import OptionReader
from penstock.pipeline.errors import OptionError
from penstock.storage.streams import ids as stream_ids

ADD, ACK, NACK, DEADLETTER = "add", "ack", "nack", "deadletter"
OPERATIONS: Final = (ADD, ACK, NACK, DEADLETTER)
EXACTLY_ONCE, AT_LEAST_ONCE, IDMP = "exactly-once", "at-least-once", "idmp"
DELIVERIES: Final = (EXACTLY_ONCE, AT_LEAST_ONCE, IDMP)
MEMORY, DISK, REPLICAS = "memory", "disk", "replicas"
AUTO, COLUMN = "auto", "column"
NOMKSTREAM: Final = "NOMKSTREAM"
NACK_MODES: Final = ("FAIL", "SILENT", "FATAL")
REFS: Final = ("KEEPREF", "DELREF", "ACKED")
KEY_HERE: Final = "{key}"  # in `deadLetterStream`
DEAD_LETTER_STREAM: Final = f"{KEY_HERE}:dead"
LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a sink. `stream` None: the rows say it (`_stream`, or `stream` for the PEL operations)."""

    servers: Servers
    operation: str
    pipeline: int  # rows in one round trip, and in one transaction of the ledger
    stream: str | None
    delivery: str
    idempotency_column: str | None
    own_ids: bool  # the rows bring their ids (`_id`)
    before_id: tuple[str, ...]  # XADD's words between the key and an IDMP or a trim
    trim: tuple[str, ...]  # XADD's words for a trim
    skip_nulls: bool
    group: str | None
    nack_mode: str
    retry_count: int | None
    min_idle_ms: int
    dead_letter_stream: str
    consumer: str
    acks: str  # where a batch is before it is committed
    acks_replicas: int
    fail_on_loss: bool
    marker_batches: int  # committed batches that the markers remember
    marker_age_ms: int
    transaction: tuple[str, int] | None  # txnAppId and txnVersion of a batch job


def read_sink(options: Mapping[str, str], overwrite: bool) -> SinkOptions:
    """The options of a sink; OptionError for a mistake."""
    reader = OptionReader(options, "sink")
    if overwrite:
        raise OptionError(
            "a stream is only appended to: write with mode('append'), a streaming query with outputMode('append')"
        )
    if reader.text("table") not in (None, "entries"):
        raise reader.mistake("table", "can only be entries: what is written is entries")
    acks, acks_replicas = _read_acks(reader)
    found = SinkOptions(
        servers=read_servers(reader),
        operation=reader.choice("operation", ADD, OPERATIONS),
        pipeline=reader.integer("pipeline", 1_000, 1, 100_000),
        stream=reader.text("stream"),
        delivery=reader.choice("delivery", EXACTLY_ONCE, DELIVERIES),
        idempotency_column=reader.text("idempotencyColumn"),
        own_ids=reader.choice("ids", AUTO, (AUTO, COLUMN)) == COLUMN,
        before_id=_read_before_id(reader),
        trim=_read_trim(reader),
        skip_nulls=reader.choice("nulls", "skip", ("skip", "empty")) == "skip",
        group=reader.text("group"),
        nack_mode=reader.choice("nackMode", NACK_MODES[0], NACK_MODES),
        retry_count=reader.integer("retryCount", None),
        min_idle_ms=reader.duration_ms("minIdle", "0"),
        dead_letter_stream=reader.text("deadLetterStream") or DEAD_LETTER_STREAM,
        consumer=reader.text("consumer") or "dead-letter",
        acks=acks,
        acks_replicas=acks_replicas,
        fail_on_loss=reader.flag("failOnDataLoss", True),
        marker_batches=reader.integer("markerBatches", 100, 1, 100_000),
        marker_age_ms=max(reader.duration_ms("markerAge", "90d"), 1),
        transaction=_read_transaction(reader),
    )
    reader.end()
    _check(found, reader)
    return found


def _read_acks(reader: OptionReader) -> tuple[str, int]:
    """What `acks` says, and the number of replicas."""
    kind, colon, number = (reader.text("acks") or MEMORY).lower().partition(":")
    if kind == REPLICAS and number.isdecimal() and int(number):
        return kind, int(number)
    if colon or kind not in (MEMORY, DISK):
        raise reader.mistake("acks", "is to be memory, disk, or replicas:N")
    return kind, 0


def _read_transaction(reader: OptionReader) -> tuple[str, int] | None:
    application, version = reader.text("txnAppId"), reader.integer("txnVersion", None)
    if (application is None) != (version is None):
        raise OptionError("'txnAppId' and 'txnVersion' need each other: an application's name, and a growing number")
    return None if application is None else (application, version)


def _read_before_id(reader: OptionReader) -> tuple[str, ...]:
    words = (NOMKSTREAM,) if reader.flag("nomkstream", False) else ()
    return (*words, reader.choice("refs", REFS[0], REFS)) if reader.has("refs") else words


def _read_trim(reader: OptionReader) -> tuple[str, ...]:
    maxlen = reader.integer("maxlen", None)
    minid = reader.text("minid")
    how = reader.choice("trim", "~", ("~", "="))
    limit = reader.integer("limit", None)
    if maxlen is not None and minid is not None:
        raise OptionError("give only one of the options 'maxlen' and 'minid'")
    if maxlen is None and minid is None:
        if reader.has("trim") or limit is not None:
            raise OptionError("'trim' and 'limit' need 'maxlen' or 'minid' beside them")
        return ()
    if limit is not None and how == "=":
        raise OptionError("'limit' needs 'trim' to be ~: an exact trim has none")
    if minid is not None:
        try:
            stream_ids.parse(minid.encode())
        except ValueError:
            raise reader.mistake("minid", "is to be an id (1700000000000-0)") from None
    words = ("MAXLEN", how, str(maxlen)) if maxlen is not None else ("MINID", how, str(minid))
    return words if limit is None else (*words, "LIMIT", str(limit))


_ADDS: Final = (
    "delivery", "idempotencyColumn", "ids", "maxlen", "minid", "trim", "refs", "nomkstream", "nulls", "failOnDataLoss",
    "markerBatches", "markerAge", "txnAppId", "txnVersion",
)  # fmt: skip
_ONLY_OF: Final = {  # which operations take an option that not all of them take
    **dict.fromkeys(_ADDS, (ADD,)),
    "group": (ACK, NACK, DEADLETTER),
    "nackMode": (NACK,),
    "retryCount": (NACK,),
    "minIdle": (NACK, DEADLETTER),
    "deadLetterStream": (DEADLETTER,),
    "consumer": (NACK, DEADLETTER),
}


def _check(found: SinkOptions, reader: OptionReader) -> None:
    """Refuse options that exclude each other, or that another operation takes."""
    for name, operations in _ONLY_OF.items():
        if reader.has(name) and found.operation not in operations:
            raise OptionError(f"{name!r} is for the operation {' or '.join(operations)}, not {found.operation!r}")
    if found.idempotency_column is not None and found.delivery != IDMP:
        raise OptionError("'idempotencyColumn' needs 'delivery' to be idmp")
    if found.transaction is not None and (found.delivery != EXACTLY_ONCE or found.own_ids):
        raise OptionError("'txnAppId' and 'txnVersion' need 'delivery' to be exactly-once, and no ids of the rows' own")
    if found.own_ids and found.delivery == IDMP:
        raise OptionError("'ids' column and 'delivery' idmp exclude each other: a server gives ids to what it compares")
