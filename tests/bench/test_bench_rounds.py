"""The rounds of `make bench`'s parts about Spark: which of them count."""

from bench.costs import comparable, in_turns

QUIET, LOUD = 0.01, 1.0


def row(rate: float, jit_us: float) -> dict[str, float]:
    return {"rate": rate, "server_us": 1.0, "jvm_us": 2.0, "jit_us": jit_us, "workers_us": 3.0}


def test_rounds_in_which_the_jvm_compiles_itself_are_dropped() -> None:
    ours = iter([row(1, LOUD), row(2, QUIET), row(30, QUIET), row(10, QUIET), row(20, QUIET)])
    theirs = iter([row(1, LOUD), row(2, LOUD), row(3, QUIET), row(3, QUIET), row(3, QUIET)])

    found = in_turns({"penstock": lambda: next(ours), "redis": lambda: next(theirs)}, rounds=3)

    assert found["penstock"] == row(20, QUIET) | {"lowest": 10, "highest": 30, "dropped": 2}
    assert found["redis"]["rate"] == 3


def test_the_servers_take_turns_at_being_first() -> None:
    turns: list[str] = []

    def run(name: str) -> dict[str, float]:
        turns.append(name)
        return row(1, QUIET)

    in_turns({name: lambda name=name: run(name) for name in ("penstock", "redis")}, rounds=3)  # type: ignore[misc]

    assert turns == ["penstock", "redis", "redis", "penstock", "penstock", "redis"]


def test_a_jvm_that_never_stops_compiling_is_measured_as_it_is() -> None:
    assert in_turns({"penstock": lambda: row(1, LOUD)}, rounds=2)["penstock"]["dropped"] == 6


def test_what_the_clock_decides_is_no_difference_between_replies() -> None:
    ours: list[object] = [b"1795752000123-0", b"1795752000124-0", [b"1795752000123-0", b"w", 17, 2]]
    theirs: list[object] = [b"1795752000555-0", b"1795752000555-1", [b"1795752000555-0", b"w", 4, 2]]

    assert comparable(ours) == comparable(theirs) == [0, 1, [0, b"w", None, 2]]
    assert comparable(ours) != comparable([theirs[0], theirs[0], theirs[2]])


def test_ids_of_many_streams_may_be_the_same_or_not() -> None:
    assert comparable([b"1795752000123-0", b"1795752000123-0"], True) == comparable(
        [b"1795752000123-0", b"1795752000124-0"], True
    )
    assert comparable([b"1700000000000-5"], True) == [b"1700000000000-5"]  # given by the load


def test_what_a_server_tells_of_itself_is_not_compared() -> None:
    ours: list[object] = [[b"length", 2, b"radix-tree-nodes", 376, b"groups", [[b"name", b"g", b"nacked-count", 0]]]]
    theirs: list[object] = [[b"length", 2, b"radix-tree-nodes", 760, b"groups", [[b"name", b"g"]]]]

    assert comparable(ours) == comparable(theirs) == [[b"length", 2, b"groups", [[b"name", b"g"]]]]
