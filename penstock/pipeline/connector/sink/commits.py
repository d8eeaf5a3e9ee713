"""The committed batches of a query at a server: an entry for each in a stream beside the tasks' markers (ledger.py).

The driver writes it when all tasks of a batch are done: key `__spark:<query>:commits`, id `<batch + 1>-1`, with the
rows and checksums of each partition. So the next batch notices a server that lost a committed batch, and a batch that
is run again from a restored checkpoint is compared and not written. The confirmation that `acks` requires covers
everything written before this entry: logs and replicas have a prefix of what the server wrote.

A node of a cluster may lose data alone. So before the entry, which is at one node, each node gets a note with the
batch: key `__spark:{tag}:<query>:commits`, in the first slot of the node. The entry has the slots of these notes.
"""

import warnings
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from penstock.errors import ReplyError
from penstock.pipeline.connector.connection.client import Client, Reply, Request, mapping, text_of
from penstock.pipeline.connector.connection.cluster import slots_of
from penstock.pipeline.connector.sink.ledger import (
    COMMITS,
    TRIES,
    Ledger,
    Task,
    Written,
    marker_key,
    newest_request,
    restored_advice,
)
from penstock.pipeline.connector.sink.placement import CRC32, RENDEZVOUS
from penstock.pipeline.connector.sink.sink_options import DISK, MEMORY, REPLICAS, SinkOptions
from penstock.pipeline.errors import BrokenWrite, PipelineError, report_loss
from penstock.storage.streams import ids

NOTES: Final = "notes"
OLD_MARKERS: Final = 64  # partitions whose markers are looked at to recognize a query of before this stream was written


Newest: TypeAlias = tuple[int | None, ...]  # the last batch that was committed, and those in its notes; empty: none


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed batch at one server; `marks` are rows and checksums by partition, of those that wrote rows there.

    `notes` are the tags of the nodes' notes, if the server is a cluster.
    """

    batch: int
    partitions: int
    endpoints: tuple[str, ...]
    placement: str
    marks: Mapping[int, Written]
    notes: tuple[str, ...] = ()

    def request(self, key: str, most: int) -> Request:
        fields: list[str | int] = ["partitions", self.partitions, "endpoints", "\n".join(self.endpoints)]
        fields += ["placed", self.placement]
        if self.notes:
            fields += [NOTES, "\n".join(self.notes)]
        for partition, mark in sorted(self.marks.items()):
            fields += [partition, f"{mark.rows}-{mark.crc}"]
        return ["XADD", key, "MAXLEN", most, f"{self.batch + 1}-1", *fields]

    @classmethod
    def of(cls, entry: Reply) -> "Commit":
        entry_id, found = entry
        fields = {name.decode(): value.decode() for name, value in mapping(found).items()}
        partitions, endpoints = int(fields.pop("partitions")), tuple(fields.pop("endpoints").split("\n"))
        placement, notes = fields.pop("placed"), tuple(fields.pop(NOTES, "").split())
        marks = {int(at): Written(int(text.partition("-")[0]), text.partition("-")[2]) for at, text in fields.items()}
        return cls(batch_of(entry_id), partitions, endpoints, placement, marks, notes)


def batch_of(entry_id: bytes) -> int:
    return (ids.parse(entry_id) >> 64) - 1


@dataclass(frozen=True, slots=True)
class Before:
    """The state of a query at its servers before a task of its batch writes.

    `batches` has the commits of this batch, by endpoint: such a batch is compared, and not written. `newest` is the
    last committed batch, also by the notes of nodes.
    """

    placement: str
    batches: Mapping[str, Commit]
    newest: Mapping[str, Newest]

    def ledger(self, options: SinkOptions, client: Client, task: Task) -> Ledger:
        """The ledger of a task at one of the servers."""
        is_committed = client.endpoint.name in self.batches
        return Ledger(client, task, self.placement, options.marker_age_ms, is_committed)

    def refuse_other_rows(self, task: Task, name: str, found: Mapping[str, Written]) -> None:
        """PipelineError if a batch was committed, and this task of it has other rows for a server now."""
        if name not in self.batches:
            return
        committed, done = self.batches[name].marks.get(task.partition, Written.of({})), Written.of(found)
        if committed != done:
            raise PipelineError(
                f"batch {task.batch} was committed with {committed.rows} rows in this task, and now it has {done.rows}"
                f", or other ones (marker {marker_key(task.query, task.partition)!r}): nothing of it was written "
                f"again. {restored_advice(task.query)}"
            )


# -- in a task --------------------------------------------------------------------------------------------------------


def look(options: SinkOptions, clients: Mapping[str, Client], task: Task) -> Before:
    """Read what was committed before a task's batch.

    DataLoss (or a warning, by failOnDataLoss) if a server does not know the batch before and the query's batches are
    consecutive. PipelineError if a newer batch was committed and this one is not known any more.
    """
    query, batch, follows = task.query, task.batch, task.follows
    key = marker_key(query, COMMITS)
    newest: dict[str, Commit] = {}
    batches: dict[str, Commit] = {}
    for name, client in clients.items():
        replies = client.pipeline([newest_request(key), ["XRANGE", key, f"{batch + 1}-0", f"{batch + 1}"]])
        for reply, found in zip(replies, (newest, batches), strict=True):
            if isinstance(reply, ReplyError):
                raise PipelineError(f"the marker {key!r} cannot be read: {text_of(reply)}")
            for entry in reply:
                found[name] = Commit.of(entry)
    if not task.partition:
        for client in clients.values():
            for node in client.nodes():
                _warn_of_eviction(node)
    last = max(newest.values(), key=lambda one: one.batch, default=None)
    if last is None:
        old = _has_old_markers(clients, query) if batch else False
        if batch and follows and clients and not old:
            _report_lost(options, next(iter(clients.values())), None, batch)
        return Before(CRC32 if old else RENDEZVOUS, {}, {})
    if last.placement == CRC32 and last.endpoints != tuple(clients):
        raise PipelineError(
            f"this query has placed its keys by their CRC32 among the endpoints {', '.join(last.endpoints)}, and with "
            f"{', '.join(clients)} most keys would move: keep the endpoints and their order, or begin a new checkpoint"
        )
    seen = {name: _newest(clients[name], query, one) for name, one in newest.items()}
    for name, (at, *notes) in seen.items():
        for tag, note in zip(newest[name].notes, notes, strict=True):
            if at is not None and (note is None or note < at):
                where = f", the node with the slot {slots_of([tag.encode()])[0]}"
                _report_lost(options, clients[name], note, at + 1, where)
    for name, client in clients.items():
        here = newest.get(name)
        known = None if here is None else here.batch
        # One that has another name now than in its last batch did not leave the query, as others may have.
        is_member = name in last.endpoints or (here is not None and name not in here.endpoints)
        if is_member and follows and batch and (known is None or known < batch - 1):
            _report_lost(options, client, known, batch)
        if is_member and known is not None and known > batch and name not in batches:
            raise PipelineError(
                f"batch {known} has been written already, and of batch {batch} no more is known than that it is older "
                f"(marker {key!r}): the checkpoint is older than markerBatches. {restored_advice(query)}"
            )
    return Before(last.placement, batches, seen)


def _has_old_markers(clients: Mapping[str, Client], query: str) -> bool:
    """Whether tasks of this query wrote before there were committed batches; such markers name no placement."""
    requests = [newest_request(marker_key(query, at)) for at in range(OLD_MARKERS)]
    single = [client for client in clients.values() if not client.shares]  # in clusters these are other notes
    found = [reply for client in single for reply in client.pipeline(requests) if isinstance(reply, list)]
    placed = [mapping(entries[0][1]).get(b"placed", CRC32.encode()) for entries in found if entries]
    return CRC32.encode() in placed


def _newest(client: Client, query: str, newest: Commit) -> Newest:
    """The newest batch, and the batches that the notes of its nodes have: an older one where a node went back."""
    notes = client.pipeline([newest_request(marker_key(query, COMMITS, tag)) for tag in newest.notes])
    for tag, reply in zip(newest.notes, notes, strict=True):
        if isinstance(reply, ReplyError):
            raise PipelineError(f"the marker {marker_key(query, COMMITS, tag)!r} cannot be read: {text_of(reply)}")
    return newest.batch, *(batch_of(reply[0][0]) if reply else None for reply in notes)


def _report_lost(options: SinkOptions, client: Client, known: int | None, batch: int, where: str = "") -> None:
    last = "it knows none of this query's batches" if known is None else f"the last batch that it knows is {known}"
    report_loss(
        f"{client.endpoint.address}{where}: the server went back: {last}, and batch {batch - 1} was committed. Rows of "
        f"the batches {0 if known is None else known + 1} to {batch - 1} are lost there; how many is not known. (So it "
        "is, too, where markers were removed, evicted, or older than markerAge, or the checkpoint is another sink's.) "
        "acks=disk or acks=replicas:N confirms a batch before it is committed",
        options.fail_on_loss,
    )


def _warn_of_eviction(client: Client) -> None:
    """Warn if the server may evict markers: then rows may be doubled, or a loss reported that did not happen."""
    reply = client.pipeline([["INFO", "memory"]])[0]
    if isinstance(reply, ReplyError):
        return  # a user may not be allowed to ask
    limit, policy = _info(reply, b"maxmemory"), _info(reply, b"maxmemory_policy")
    if limit not in (b"", b"0") and policy not in (b"", b"noeviction"):
        warnings.warn(
            f"{client.endpoint.address}: with maxmemory {limit.decode()} and maxmemory-policy {policy.decode()} the "
            "server may evict the markers of exactly-once writing: use noeviction",
            stacklevel=2,
        )


def _info(reply: bytes, name: bytes) -> bytes:
    """A field of INFO; empty if there is none."""
    return next((line[len(name) + 1 :] for line in reply.split(b"\r\n") if line.startswith(name + b":")), b"")


def run_ids(client: Client) -> bytes:
    """The run ids of a server, or of the nodes of a cluster. PipelineError if one does not say its own."""
    return b" ".join(sorted(map(_run_id, client.nodes())))


def _run_id(client: Client) -> bytes:
    reply = client.pipeline([["INFO", "server"]])[0]
    found = b"" if isinstance(reply, ReplyError) else _info(reply, b"run_id")
    if not found:
        raise PipelineError(f"{client.endpoint.address}: acks needs INFO with a run_id, and this server has none")
    return found


# -- on the driver ----------------------------------------------------------------------------------------------------


def unbroken(noting: Callable[[], None]) -> None:
    """Note a batch, again from its beginning where a connection broke: it first looks at what is there already."""
    for _ in range(TRIES - 1):
        try:
            noting()
        except BrokenWrite:
            continue
        return
    noting()


def commit(
    options: SinkOptions,
    client: Client,
    query: str,
    found: Commit,
    written: Mapping[int, Mapping[str, Written]],
    known: Set[Newest],
) -> None:
    """Note that a batch is written, after all of it is found to be there, and wait for what `acks` asks for.

    `written`: by partition and tag. PipelineError if a task's marker is not what the task has written, or the newest
    batch not one of `known`, those that the tasks have seen (the server went back amid the batch: the batch is to be
    run again); if another batch of that number was committed, or if the server does not confirm it.
    """
    key = marker_key(query, COMMITS)
    newest, there = client.pipeline(
        [newest_request(key), ["XRANGE", key, f"{found.batch + 1}-0", f"{found.batch + 1}"]]
    )
    for reply in (newest, there):
        if isinstance(reply, ReplyError):
            raise PipelineError(f"the marker {key!r} cannot be read: {text_of(reply)}")
    if there:
        before = Commit.of(there[0])
        if (before.partitions, before.marks) != (found.partitions, found.marks):
            raise PipelineError(
                f"batch {found.batch} was committed with other rows, in {before.partitions} partitions, and not in the "
                f"{found.partitions} of now (marker {key!r}): nothing of it was written again. {restored_advice(query)}"
            )
    else:
        if (_newest(client, query, Commit.of(newest[0])) if newest else ()) not in known:
            raise _went_back(client, found, f"the batches before it are not those of when it began (marker {key!r})")
        _refuse_absent(client, query, found, written)
    if client.shares and not there:
        found = replace(found, notes=_note_nodes(options, client, query, f"{found.batch + 1}-1"))
    home = client.at_key(key)
    add = [] if there else [found.request(key, options.marker_batches)]
    for reply in home.pipeline([*add, ["PEXPIRE", key, options.marker_age_ms]], retry=False):
        if isinstance(reply, ReplyError):
            raise PipelineError(f"batch {found.batch} cannot be committed (marker {key!r}): {text_of(reply)}")
    confirm(options, home)


def _refuse_absent(client: Client, query: str, found: Commit, written: Mapping[int, Mapping[str, Written]]) -> None:
    expected = {
        marker_key(query, partition, tag): (partition, mark)
        for partition, parts in written.items()
        for tag, mark in parts.items()
    }
    markers = client.pipeline([newest_request(marker) for marker in expected])
    for (marker, (partition, mark)), reply in zip(expected.items(), markers, strict=True):
        entry_id, fields = reply[0] if isinstance(reply, list) and reply else (None, [])
        if entry_id != f"{found.batch + 1}-{mark.rows}".encode() or mapping(fields).get(b"crc") != mark.crc.encode():
            text = f"partition {partition} had written {mark.rows} rows, and its marker {marker!r} does not say so"
            raise _went_back(client, found, text)


def _went_back(client: Client, found: Commit, text: str) -> PipelineError:
    return PipelineError(
        f"{client.endpoint.address}: the server went back amid batch {found.batch}: {text}. The batch is not "
        "committed; start the query again, and it writes what is missing"
    )


def confirm_run(options: SinkOptions, client: Client, query: str, runs: Set[bytes | None]) -> None:
    """Wait for what `acks` asks for where there is no ledger; `runs` are the run ids that the tasks have seen.

    PipelineError if the server is another process now: what the tasks have written may not be part of it.
    """
    _note_nodes(options, client, query, "*")
    if runs != {run_ids(client)}:
        raise PipelineError(
            f"{client.endpoint.address}: the server was started again, or another one has taken its place, while the "
            "batch was written, so nothing confirms its rows; the batch is not committed"
        )


def _note_nodes(options: SinkOptions, client: Client, query: str, entry_id: str) -> tuple[str, ...]:
    """Write a note at each node, and wait until it has confirmed it as `acks` asks for; the tags of the notes.

    Where a slot has moved meanwhile, its rows may have come to a node after its note: then all of it is done again.
    """
    while True:
        tags = []
        for node in client.nodes():
            key = marker_key(query, COMMITS, node.tag)
            there = node.pipeline([newest_request(key)])[0]
            is_noted = isinstance(there, list) and bool(there) and there[0][0] == entry_id.encode()
            add: list[Request] = [] if is_noted else [["XADD", key, "MAXLEN", 1, entry_id, "acks", options.acks]]
            for reply in node.pipeline([*add, ["PEXPIRE", key, options.marker_age_ms]], retry=False):
                if isinstance(reply, ReplyError):
                    raise PipelineError(f"the batch cannot be confirmed (stream {key!r}): {text_of(reply)}")
            confirm(options, node)
            tags.append(node.tag)
        if options.acks == MEMORY or not client.have_moved():
            return tuple(tags)


def confirm(options: SinkOptions, client: Client) -> None:
    """Wait until what this connection has written, and all before it, is as safe as `acks` asks for.

    To be called after a write on the same connection: WAIT and WAITAOF wait for the connection's own writes.
    """
    timeout_ms = int(options.servers.access.read_s * 1000)
    if options.acks == DISK:
        words: Request = ["WAITAOF", 1, 0, timeout_ms]
    elif options.acks == REPLICAS:
        words = ["WAIT", options.acks_replicas, timeout_ms]
    else:
        return
    reply = client.pipeline([words], retry=False, wait_s=timeout_ms / 1000)[0]
    if isinstance(reply, ReplyError):
        raise PipelineError(
            f"{client.endpoint.address}: acks={options.acks} is not possible with this server: {text_of(reply)}"
        )
    if options.acks == DISK and not reply[0]:
        raise PipelineError(
            f"{client.endpoint.address}: the server did not confirm within readTimeout ({timeout_ms} ms) that the "
            "batch is on its disk (appendfsync no leaves that to the system); the batch is not committed"
        )
    if options.acks == REPLICAS and reply < options.acks_replicas:
        raise PipelineError(
            f"{client.endpoint.address}: {reply} of the {options.acks_replicas} replicas that acks asks for confirmed "
            f"the batch within readTimeout ({timeout_ms} ms); the batch is not committed"
        )
