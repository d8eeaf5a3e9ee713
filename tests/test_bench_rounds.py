"""The rounds of `make bench`'s parts about Spark: which of them count."""

from bench.costs import in_turns

QUIET, LOUD = 0.01, 1.0


def row(rate: float, jit_us: float) -> dict[str, float]:
    return {"rate": rate, "server_us": 1.0, "jvm_us": 2.0, "jit_us": jit_us, "workers_us": 3.0}


def test_rounds_in_which_the_jvm_compiles_itself_are_dropped() -> None:
    ours = iter([row(1, LOUD), row(2, QUIET), row(30, QUIET), row(10, QUIET), row(20, QUIET)])
    theirs = iter([row(1, LOUD), row(2, LOUD), row(3, QUIET), row(3, QUIET), row(3, QUIET)])

    found = in_turns({"penstock": lambda: next(ours), "redis": lambda: next(theirs)}, rounds=3)

    assert found["penstock"] == row(20, QUIET) | {"lowest": 10, "highest": 30, "dropped": 2}
    assert found["redis"]["rate"] == 3


def test_the_servers_alternate_in_who_comes_first() -> None:
    turns: list[str] = []

    def run(name: str) -> dict[str, float]:
        turns.append(name)
        return row(1, QUIET)

    in_turns({name: lambda name=name: run(name) for name in ("penstock", "redis")}, rounds=3)  # type: ignore[misc]

    assert turns == ["penstock", "redis", "redis", "penstock", "penstock", "redis"]


def test_a_jvm_that_never_stops_compiling_is_measured_as_it_is() -> None:
    assert in_turns({"penstock": lambda: row(1, LOUD)}, rounds=2)["penstock"]["dropped"] == 6
