"""`python -m tests.world`: worlds by their numbers."""

import argparse
import hashlib
import sys
import time
from collections import Counter
from itertools import count

from tests.world import casts, server_casts
from tests.world.casts import Cut
from tests.world.replicas import ROLES, ServersWorld
from tests.world.shrink import smallest
from tests.world.world import World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.world", description="Simulated worlds, each by its number.")
    parser.add_argument("--cast", choices=casts.ALL, help="the worlds' cast (default: each in turn; queues for --seed)")
    parser.add_argument("--seed", type=int, help="tell this one world's story")
    parser.add_argument("--cut", type=Cut.read, help="with --seed: a smaller world, as --shrink names it")
    parser.add_argument("--shrink", type=int, metavar="SEED", help="look for a smaller world with the same objection")
    parser.add_argument("--seeds", default="0-99", help="A-B: run these worlds (default: 0-99)")
    parser.add_argument("--minutes", type=float, help="run worlds from the first seed on for so long")
    parser.add_argument(
        "--servers", nargs="?", const=ROLES.name, choices=server_casts.ALL,
        help="worlds of a master and two replicas (default: their roles change)",
    )  # fmt: skip
    chosen = parser.parse_args()
    cast = casts.ALL[chosen.cast or casts.QUEUES.name]
    servers = server_casts.ALL[chosen.servers] if chosen.servers else None

    def made(seed: int, of: casts.Cast, is_told: bool = False, cut: Cut | None = None) -> World:
        return World(seed, of, is_told, cut) if servers is None else ServersWorld(seed, is_told, servers, cut)

    def named(seed: int, of: casts.Cast) -> str:
        return f"{f'--cast {of.name}' if servers is None else f'--servers {servers.name}'} --seed {seed}"

    if chosen.shrink is not None:
        number = chosen.seed = chosen.shrink
        chosen.cut = smallest(lambda cut: made(number, cast, cut=cut), named(number, cast), tell)
    if chosen.seed is not None:
        world = made(chosen.seed, cast, is_told=True, cut=chosen.cut)
        objections = world.run()
        tell("\n".join(world.story.lines))
        tell("\n".join(f"OBJECTION: {one}" for one in objections) or "no objection")
        return 1 if objections else 0
    first, _, last = chosen.seeds.partition("-")
    seeds = count(int(first)) if chosen.minutes else range(int(first), int(last or first) + 1)
    began_s = time.process_time()
    figures: Counter[str] = Counter()
    worlds = objected = 0
    sent = hashlib.blake2b(digest_size=16)
    taking_part = [cast] if chosen.cast or chosen.servers else list(casts.ALL.values())
    for seed, one in ((seed, one) for seed in seeds for one in taking_part):
        world = made(seed, one)
        objections = world.run()
        worlds += 1
        figures += world.figures()
        sent.update(world.network.digest().encode())
        if objections:
            objected += 1
            tell(f"{named(seed, one)}: {len(objections)} objections; the first: {objections[0]}")
        if chosen.minutes and time.process_time() - began_s > chosen.minutes * 60:
            break
    spent_s = time.process_time() - began_s
    tell(f"{worlds} worlds in {spent_s:.1f} s of CPU: {objected} with objections")
    tell(", ".join(f"{name} {number}" for name, number in sorted(figures.items())))
    tell(f"bytes of all worlds: {sent.hexdigest()}")
    return 1 if objected else 0


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
