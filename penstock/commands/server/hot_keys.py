"""HOTKEYS: which keys take the most time and traffic (Redis 8.6.3).

Tests: transcripts hotkeys, cluster_hotkeys; cases commands/test_hot_keys.
"""

from typing import Final

from penstock.commands.common.help import declare_help
from penstock.engine import arguments, refusals
from penstock.engine.cluster import hash_slots
from penstock.engine.cluster.hash_slots import SLOTS
from penstock.engine.cluster.slot_rules import SlotRules
from penstock.engine.context import Context
from penstock.engine.table.command_table import command, container
from penstock.engine.telemetry.hot_keys import FOR_EVER, HotKeys
from penstock.errors import ReplyError
from penstock.protocol import reply

METRICS: Final = (b"CPU", b"NET")
USUAL_COUNT: Final = 10
MOST_SHOWN: Final = 64
LONGEST_S: Final = 1_000_000

container("HOTKEYS", group="server", since="8.6.0", summary="Commands that find the keys which take the most.")


@command(
    "HOTKEYS|START metrics:METRICS (count [CPU] [NET]) [COUNT k:integer] [DURATION seconds:integer] "
    "[SAMPLE ratio:integer] "
    "[slots:SLOTS (count slot:integer ...)]",
    "8.6.0 admin noscript | tips request_policy:special | arity -2",
    "Begins to collect what keys take.",
)
def hotkeys_start(ctx: Context, args: list[bytes]) -> bytes:
    held = ctx.telemetry.hot_keys
    if held is not None and held.is_active(ctx.now_ms):
        raise ReplyError(b"ERR hotkey tracking session already in progress")
    metrics, at = _read_metrics(args)
    count, sample, duration_ms = USUAL_COUNT, 1, FOR_EVER
    slots: frozenset[int] = frozenset()
    while at < len(args):
        option = args[at].upper()
        if at + 1 == len(args):
            raise refusals.syntax()
        if option == b"COUNT":
            count = arguments.within(1, MOST_SHOWN, args[at + 1], b"ERR COUNT must be between 1 and 64")
        elif option == b"SAMPLE":
            sample = arguments.at_least(1, args[at + 1], b"ERR SAMPLE ratio must be positive")
        elif option == b"DURATION":
            refusal = b"ERR DURATION must be between 1 and 1000000"
            duration_ms = arguments.within(1, LONGEST_S, args[at + 1], refusal) * 1000
        elif option == b"SLOTS":
            if slots:
                raise ReplyError(b"ERR SLOTS parameter already specified")
            slots = _read_slots(args, at + 1, ctx.cluster)
            at += len(slots)
        else:
            raise refusals.syntax()
        at += 2
    hot_keys = HotKeys(ctx.chance, ctx.now_ms, metrics, count, sample, duration_ms, slots)
    ctx.telemetry.collect_hot_keys(hot_keys)
    return reply.OK


def _read_metrics(args: list[bytes]) -> tuple[list[bytes], int]:
    """The metrics, and the place of what follows them. Unknown ones count, but are passed over (Redis 8.6.3)."""
    if len(args) < 4 or args[2].upper() != b"METRICS":
        raise ReplyError(b"ERR METRICS parameter is required")
    count = arguments.within(1, len(METRICS), args[3], b"ERR METRICS count must be > 0 and <= 2")
    named = [word.upper() for word in args[4 : 4 + count]]
    metrics: list[bytes] = []
    for name in named:
        if name in metrics:
            raise ReplyError(b"ERR METRICS %b defined more than once!" % name)
        if name in METRICS:
            metrics.append(name)
    if len(named) < count:
        raise ReplyError(b"ERR METRICS count does not match number of metric types provided")
    if not metrics:
        raise ReplyError(b"ERR METRICS no valid metrics passed. Supported: CPU|NET")
    return metrics, 4 + count


def _read_slots(args: list[bytes], at: int, rules: SlotRules | None) -> frozenset[int]:
    """The slots behind their count, which is at a place."""
    if rules is None:
        raise ReplyError(b"ERR SLOTS parameter cannot be used in non-cluster mode")
    count = arguments.within(1, SLOTS, args[at], b"ERR SLOTS count must be between 1 and 16384")
    words = args[at + 1 : at + 1 + count]
    if len(words) < count:
        raise ReplyError(b"ERR not enough slot numbers provided")
    slots: set[int] = set()
    for word in words:
        slot = arguments.slot(word)
        if not rules.node.owns(slot):
            raise ReplyError(b"ERR slot %d not handled by this node" % slot)
        if slot in slots:
            raise ReplyError(b"ERR duplicate slot number")
        slots.add(slot)
    return frozenset(slots)


@command(
    "HOTKEYS|STOP", "8.6.0 admin noscript | tips request_policy:special", "Stops to collect; what was collected stays."
)
def hotkeys_stop(ctx: Context, args: list[bytes]) -> bytes:
    held = ctx.telemetry.hot_keys
    if held is None or not held.is_active(ctx.now_ms):
        return reply.null(ctx.resp3)
    held.stop(ctx.now_ms)
    ctx.telemetry.collect_hot_keys(held)
    return reply.OK


@command("HOTKEYS|RESET", "8.6.0 admin noscript | tips request_policy:special", "Forgets what was collected.")
def hotkeys_reset(ctx: Context, args: list[bytes]) -> bytes:
    held = ctx.telemetry.hot_keys
    if held is not None and held.is_active(ctx.now_ms):
        raise ReplyError(b"ERR hotkey tracking session in progress, stop tracking first")
    ctx.telemetry.collect_hot_keys(None)
    return reply.OK


@command(
    "HOTKEYS|GET",
    "8.6.0 admin noscript | tips nondeterministic_output request_policy:special response_policy:special",
    "Returns the keys that took the most.",
    "O(K) where K is the number of hotkeys returned.",
)
def hotkeys_get(ctx: Context, args: list[bytes]) -> bytes:
    held = ctx.telemetry.hot_keys
    if held is None:
        return reply.null(ctx.resp3)
    user_ms, system_ms = held.cpu_ms()
    fields = [
        (b"tracking-active", reply.ONE if held.is_active(ctx.now_ms) else reply.ZERO),
        (b"sample-ratio", reply.integer(held.sample)),
        (b"selected-slots", reply.array([_range(first, last) for first, last in _selected(held, ctx.cluster)])),
    ]
    if held.slots and held.sample > 1:
        fields.append((b"sampled-commands-selected-slots-us", reply.integer(held.sampled_usec)))
    if held.slots:
        fields.append((b"all-commands-selected-slots-us", reply.integer(held.slots_usec)))
    fields.append((b"all-commands-all-slots-us", reply.integer(held.all_usec)))
    if held.slots and held.sample > 1:
        fields.append((b"net-bytes-sampled-commands-selected-slots", reply.integer(held.sampled_bytes)))
    if held.slots:
        fields.append((b"net-bytes-all-commands-selected-slots", reply.integer(held.slots_bytes)))
    fields += [
        (b"net-bytes-all-commands-all-slots", reply.integer(held.all_bytes)),
        (b"collection-start-time-unix-ms", reply.integer(held.started_ms)),
        (b"collection-duration-ms", reply.integer(held.took_ms(ctx.now_ms))),
    ]
    if b"CPU" in held.metrics:
        fields.append((b"total-cpu-time-user-ms", reply.integer(user_ms)))
        fields.append((b"total-cpu-time-sys-ms", reply.integer(system_ms)))
    if b"NET" in held.metrics:
        fields.append((b"total-net-bytes", reply.integer(held.key_bytes)))
    if b"CPU" in held.metrics:
        fields.append((b"by-cpu-time-us", _ranked(held.by_usec())))
    if b"NET" in held.metrics:
        fields.append((b"by-net-bytes", _ranked(held.by_bytes())))
    return reply.array([reply.fields(fields, ctx.resp3)])


def _selected(held: HotKeys, rules: SlotRules | None) -> list[tuple[int, int]]:
    """The ranges of slots with keys that are counted."""
    if held.slots:
        return hash_slots.ranges(bytearray(slot in held.slots for slot in range(SLOTS)))
    return [(0, SLOTS - 1)] if rules is None else rules.node.ranges()


def _range(first: int, last: int) -> bytes:
    """A single slot stands alone."""
    return reply.array([reply.integer(slot) for slot in ((first,) if first == last else (first, last))])


def _ranked(counts: list[tuple[bytes, int]]) -> bytes:
    return reply.array([shown for key, count in counts for shown in (reply.bulk(key), reply.integer(count))])


declare_help(
    "HOTKEYS",
    "8.6.1",
    [
        ("GET", "Return the keys that took the most."),
        ("RESET", "Forget what was collected."),
        (
            "START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>]"
            " [SLOTS <count> <slot> ...]",
            "Collect what keys take: time (CPU), bytes of requests and replies (NET).",
        ),
        ("STOP", "Stop to collect."),
    ],
)
