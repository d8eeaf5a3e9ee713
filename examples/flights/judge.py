"""Joins the journals of all processes, dead ones too, and says what became of every flight."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from examples.audit.checks import Finding
from examples.audit.journals import Line


@dataclass(slots=True)
class Verdict:
    """What happened to the flights; the last five must be 0 (`is_clean`)."""

    produced: int  # entries in the stream
    processed: int  # flights with their work done, at least once
    redelivered: int  # deliveries that were not the entry's first
    from_history: int  # of these: read again by the same consumer name
    taken_over: int  # of these: by XAUTOCLAIM or XREADGROUP CLAIM
    repeated: int  # times that work was done again, after a redelivery
    refused: int  # entries given back with XNACK
    lost: int  # flights never processed, or acknowledged by the server and not in the stream
    sent_twice: int  # entries in the stream beyond one for each flight
    doubled: int  # times that work was done again without a redelivery
    came_back: int  # deliveries that were asked for after the XACK of their entry was answered
    pending: int  # entries left in the group's pending list

    def is_clean(self) -> bool:
        return not (self.lost or self.sent_twice or self.doubled or self.came_back or self.pending)


def judge(flights: int, in_stream: dict[str, str], pending: int, journals: Iterable[Line]) -> Verdict:
    """The verdict on a run of `flights` flights; `in_stream` gives the serial of every entry's id.

    An entry may be processed more than once: a worker that dies between the work and its acknowledgement leaves it to
    another worker. Then its delivery count says that it was delivered again. Two processings at delivery count 1 mean
    that the server gave one entry out twice and did not know: "processed twice without a redelivery".
    """
    processed: Counter[str] = Counter()  # serial -> times
    first_time: Counter[str] = Counter()  # id -> times processed at delivery count 1
    sources: Counter[str] = Counter()
    refused: set[str] = set()
    told: set[str] = set()  # ids that a producer was told of
    acked_ns: dict[str, int] = {}
    asked_ns: list[tuple[str, int]] = []

    for words in journals:
        verb = words[0]
        if verb in ("sent", "found"):
            told.add(words[1])
        elif verb == "acked":
            acked_ns[words[1]] = min(int(words[2]), acked_ns.get(words[1], int(words[2])))
        elif verb in ("processed", "refused"):
            _, entry_id, serial, deliveries, source, asked = words
            asked_ns.append((entry_id, int(asked)))
            if int(deliveries) > 1:
                sources[source] += 1
            if verb == "refused":
                refused.add(entry_id)
            else:
                processed[serial] += 1
                first_time[entry_id] += int(deliveries) == 1

    serials = set(in_stream.values())
    doubled = sum(times - 1 for times in first_time.values() if times > 1)
    return Verdict(
        produced=len(in_stream),
        processed=len(processed),
        redelivered=sources.total(),
        from_history=sources["history"],
        taken_over=sources["autoclaim"] + sources["claim"],
        repeated=sum(times - 1 for times in processed.values()) - doubled,
        refused=len(refused),
        lost=sum(str(serial) not in processed for serial in range(flights)) + len(told - in_stream.keys()),
        sent_twice=len(in_stream) - len(serials),
        doubled=doubled,
        came_back=sum(asked > acked_ns.get(entry_id, asked) for entry_id, asked in asked_ns),
        pending=pending,
    )


def table(verdict: Verdict, flights: int, wall_s: float) -> str:
    rows: list[tuple[str, str, str]] = [
        ("flights", f"{flights:,}", ""),
        ("produced", f"{verdict.produced:,}", ""),
        ("processed", f"{verdict.processed:,}", ""),
        ("redelivered", f"{verdict.redelivered:,}", ""),
        ("  from the worker's own history", f"{verdict.from_history:,}", ""),
        ("  taken over (XAUTOCLAIM, CLAIM)", f"{verdict.taken_over:,}", ""),
        ("  processed again after that", f"{verdict.repeated:,}", ""),
        ("NACKed", f"{verdict.refused:,}", ""),
        ("lost", f"{verdict.lost:,}", "must be 0"),
        ("sent twice", f"{verdict.sent_twice:,}", "must be 0"),
        ("processed twice without a redelivery", f"{verdict.doubled:,}", "must be 0"),
        ("came back after its acknowledgement", f"{verdict.came_back:,}", "must be 0"),
        ("left pending", f"{verdict.pending:,}", "must be 0"),
        ("wall time, s", f"{wall_s:,.1f}", ""),
        ("entries a second", f"{flights / wall_s:,.0f}", ""),
    ]
    return "\n".join(f"{name:<38}{number:>12}  {rule}".rstrip() for name, number, rule in rows)


def log_table(findings: Iterable[Finding]) -> str:
    """What the server's log says of the same run, joined with the same journals."""
    lines = ["", "by the server's log:"]
    for one in findings:
        rule = "must be 0" if one.check.must_be_zero else ""
        example = f", {one.example} for one" if one.is_a_fault else ""
        lines.append(f"{one.check.name:<54}{one.entries:>12,}  {rule}{example}".rstrip())
    return "\n".join(lines)
