"""Compresses the entries of streams that rest: in each tick some segments, until a limit of time."""

from typing import Final

from penstock.engine.server_state import ServerState

PACKED_AT_ONCE_US: Final = 1_000  # of time, in one tick


def run(server: ServerState) -> None:
    """Not while a child writes the data: it would get a copy of each page of memory that is changed here."""
    packing, clock, persistence = server.form_limits.streams.packing, server.clock, server.persistence
    now_us = clock.monotonic_us()
    is_hindered = server.conditions.loading or persistence.child or persistence.saves.runs
    if is_hindered or not packing.is_due(now_us // 1000):
        return
    until_us = now_us + PACKED_AT_ONCE_US
    while packing.is_due(now_us // 1000) and now_us < until_us:
        packing.step(now_us // 1000)
        now_us = clock.monotonic_us()
    if packing.is_behind:
        server.ticks_are_behind = True
