"""How fast logs are loaded: `python -m bench.load_speed`, in CPU seconds of a start less those of an empty start.

Three logs, each loaded by every server in turn, several times; the best counts, and the ratios are of one run:

    pipelined   XADDs of one field, as producers that pipeline make them: many in a millisecond
    spread      the same, one in a millisecond
    deliveries  what a server logs itself of 100,000 entries added, delivered by the hundred, and 90 of each hundred
                acknowledged by one XACK: Penstock loads its own log, Redis its own
    one by one  the same, acknowledged by an XACK each

A calibration (a loop in Python) tells how fast the machine was just then.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.accounting import cpu_ns
from bench.link import Link, Request, packed
from bench.servers import COMPILED, OURS, PLAIN, REDIS, ROOT, Absent, Pythons, command, environment, free_port, running
from penstock.engine.effects import pack

MANIFEST: Final = b"file appendonly.aof.1.base.aof seq 1 type b\n"
LOGGING: Final = ("--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", "no")
FIRST_MS: Final = 1_795_300_000_000
IN_A_MS: Final = 100
BATCH: Final = 100
ACKNOWLEDGED: Final = 90  # of a batch
HISTORIES: Final = {"deliveries": ACKNOWLEDGED, "one by one": 1}  # how many are acknowledged at once
LONGEST_START_S: Final = 600.0
LOOK_EVERY_S: Final = 0.02
EMPTY: Final = "empty"


def xadd_lines(entries: int, in_a_ms: int) -> bytes:
    ids = (b"%d-%d" % (FIRST_MS + at // in_a_ms, at % in_a_ms) for at in range(entries))
    return pack((b"SELECT", b"0")) + b"".join(
        pack((b"XADD", b"s", each, b"field", b"value of some length")) for each in ids
    )


def write_log(root: Path, lines: bytes) -> None:
    """A log of one base."""
    directory = root / "appendonlydir"
    directory.mkdir(parents=True)
    (directory / "appendonly.aof.1.base.aof").write_bytes(lines)
    (directory / "appendonly.aof.manifest").write_bytes(MANIFEST)


def record_deliveries(name: str, pythons: Pythons, entries: int, at_once: int, root: Path) -> None:
    """Have a server log a history of deliveries, acknowledged so many at once, and take its log."""
    with running(name, *LOGGING, pythons=pythons) as server, Link(server.port) as link:
        link.ask(b"XGROUP", b"CREATE", b"s", b"g", b"0", b"MKSTREAM")
        for number in range(entries // BATCH):
            pipeline(link, [(b"XADD", b"s", b"*", b"field", b"value of some length")] * BATCH)
            read = link.ask(
                b"XREADGROUP",
                b"GROUP",
                b"g",
                b"worker%d" % (number % 10),
                b"COUNT",
                b"%d" % BATCH,
                b"STREAMS",
                b"s",
                b">",
            )
            assert isinstance(read, list)
            done = [entry[0] for entry in read[0][1][:ACKNOWLEDGED]]
            pipeline(link, [(b"XACK", b"s", b"g", *done[at : at + at_once]) for at in range(0, len(done), at_once)])
        told = link.ask(b"CONFIG", b"GET", b"dir")
        assert isinstance(told, list)
        shutil.copytree(Path(told[1].decode()) / "appendonlydir", root / "appendonlydir")


def pipeline(link: Link, requests: list[Request]) -> None:
    link.socket.sendall(packed(requests))
    link.replies(len(requests))


def loading_ns(name: str, pythons: Pythons, root: Path) -> tuple[int, int]:
    """CPU time from a server's start until it answers, and how many entries it has then."""
    port = free_port()
    words = [*command(name, port, root, pythons), *LOGGING]
    process = subprocess.Popen(
        words, cwd=ROOT if name == PLAIN else root, env=environment(name),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until_s = time.monotonic() + LONGEST_START_S
        while not answers(port):
            assert process.poll() is None and time.monotonic() < until_s, f"{name} does not load {root}"
            time.sleep(LOOK_EVERY_S)
        spent_ns = cpu_ns(process.pid)
        with Link(port) as link:
            entries = link.ask(b"XLEN", b"s")
        assert isinstance(entries, int)
        return spent_ns, entries
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        with Link(port) as link:
            return link.ask(b"PING") == b"PONG"
    except OSError:
        return False


def calibration_s() -> float:
    """CPU seconds of a million additions: how slow the machine is."""
    began_s = time.process_time()
    total = 0
    for number in range(1_000_000):
        total += number
    return time.process_time() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load_speed", description="Logs and how fast they load.")
    parser.add_argument("--entries", type=int, default=300_000)
    parser.add_argument("--delivered", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--servers", default=f"{PLAIN},{REDIS}", help=f"of {PLAIN}, {COMPILED}, {REDIS}")
    parser.add_argument("--compiled", type=Path, default=Pythons().compiled, help="a Python with the compiled wheel")
    args = parser.parse_args()
    pythons = Pythons(compiled=args.compiled.absolute())
    names = args.servers.split(",")
    with tempfile.TemporaryDirectory(prefix="bench-loading-") as folder:
        best: dict[tuple[str, str], int] = {}
        sizes: dict[str, int] = {"pipelined": args.entries, "spread": args.entries}
        sizes |= dict.fromkeys(HISTORIES, args.delivered)
        lines = {"pipelined": xadd_lines(args.entries, IN_A_MS), "spread": xadd_lines(args.entries, 1), EMPTY: b""}
        for name in names:
            for log, text in lines.items():
                write_log(Path(folder, name, log), text)
            try:
                for log, at_once in HISTORIES.items():
                    record_deliveries(name, pythons, args.delivered, at_once, Path(folder, name, log))
            except Absent as problem:
                sys.exit(str(problem))
        slowness = []
        for _ in range(args.rounds):
            slowness.append(calibration_s())
            for log in (EMPTY, *sizes):
                for name in names:
                    spent_ns, entries = loading_ns(name, pythons, Path(folder, name, log))
                    assert entries == sizes.get(log, 0), (name, log, entries)
                    best[name, log] = min(spent_ns, best.get((name, log), spent_ns))
        print(f"a million additions in Python: {min(slowness):.3f} to {max(slowness):.3f} s of CPU")
        for log, size in sizes.items():
            spent = {name: (best[name, log] - best[name, EMPTY]) / 1e9 for name in names}
            for name in names:
                ratio = f", {spent[name] / spent[REDIS]:.2f} times Redis's" if name in OURS and REDIS in names else ""
                rate = "" if log in HISTORIES else f", {size / spent[name]:,.0f} lines/s"
                print(f"{log:11} {name:9} {spent[name]:.3f} s of CPU{rate}{ratio}")


if __name__ == "__main__":
    main()
