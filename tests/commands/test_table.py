"""What follows from a declaration: categories, key positions, the table itself."""

import pytest

from penstock.engine.context import Context
from penstock.engine.table import command_table, key_specs
from penstock.engine.table.acl_categories import categories
from penstock.engine.table.command_table import Command
from penstock.engine.table.row import Declaration


def no_reply(ctx: Context, args: list[bytes]) -> bytes:
    return b""


def row(
    name: str = "XACK", syntax: str = "key [value [value ...]]", group: str = "stream", arity: int = -2, **given: str
) -> Command:
    """A declared row; `given` are flags, keys and acl."""
    declared = {"flags": "", "keys": "", "acl": "", **given}
    return Command(
        Declaration(
            name, syntax, group, "5.0.0", "Says something.", "O(1)", declared["flags"], declared["keys"],
            acl=declared["acl"], arity=arity,
        ),
        no_reply,
    )  # fmt: skip


def bare(name: str) -> Command:
    """A container's row."""
    return Command(Declaration(name, "", "stream", "5.0.0", "Holds.", "", arity=-2), None)


CATEGORIES = {
    "group and flags": (row(flags="write fast"), ["write", "stream", "fast"]),
    "a reader is slow where it is not fast": (row(flags="readonly"), ["read", "stream", "slow"]),
    "generic is keyspace": (row(group="generic", flags="write"), ["keyspace", "write", "slow"]),
    "admin is dangerous": (row(group="server", flags="admin"), ["admin", "slow", "dangerous"]),
    "blocking": (row(flags="readonly blocking"), ["read", "stream", "slow", "blocking"]),
    "pubsub": (row(group="pubsub", flags="pubsub fast"), ["pubsub", "fast"]),
    "extras": (row(group="server", acl="connection dangerous"), ["slow", "dangerous", "connection"]),
    "exceptions": (row(flags="readonly", acl="-stream"), ["read", "slow"]),
    "a container is only slow": (bare("XGROUP"), ["slow"]),
}


@pytest.mark.parametrize(("declared", "expected"), CATEGORIES.values(), ids=CATEGORIES)
def test_acl_categories_follow_from_group_and_flags(declared: Command, expected: list[str]) -> None:
    assert categories(declared) == expected


KEYS = {
    "one": ("1 RW", b"XADD k 1-0 f v", [b"k"]),
    "of a subcommand": ("2 RW", b"XGROUP CREATE k g 0", [b"k"]),
    "all": ("1..-1 RW", b"DEL a b c", [b"a", b"b", b"c"]),
    "every second": ("1..-1/2 OW", b"MSET a 1 b 2", [b"a", b"b"]),
    "two specifications": ("1 RW; 2 OW", b"RENAME a b", [b"a", b"b"]),
    "counted": ("numkeys@2 RO", b"EVAL text 2 a b argument", [b"a", b"b"]),
    "counted in pairs": ("numkeys@1/2 OW", b"MSETEX 2 a 1 b 2 NX", [b"a", b"b"]),
    "a channel is no key": ("1 not_key; 2 RW", b"X channel k", [b"k"]),
}


@pytest.mark.parametrize(("keys", "request_line", "expected"), KEYS.values(), ids=KEYS)
def test_keys_are_found_where_the_declaration_says(keys: str, request_line: bytes, expected: list[bytes]) -> None:
    assert row(keys=keys).keys_of(request_line.split()) == expected


KEYLESS = {
    "behind a word, of a command that finds none itself": ("STREAMS@1..half RO", b"XREAD STREAMS a 0"),
    "more keys than words": ("numkeys@1 RO", b"ZUNION 3 a b"),
    "no number": ("numkeys@1 RO", b"ZUNION z a b"),
    "fewer than none": ("numkeys@1 RO", b"ZUNION -1 a b"),
    "a second specification is wrong": ("1 OW; numkeys@2 RO", b"ZUNIONSTORE d 9 a"),
}


@pytest.mark.parametrize(("keys", "request_line"), KEYLESS.values(), ids=KEYLESS)
def test_keys_that_cannot_be_told_are_not_found(keys: str, request_line: bytes) -> None:
    assert row(keys=keys).keys_of(request_line.split()) == []


RANGES = {
    "none": ("", (0, 0, 0)),
    "one": ("1 RW", (1, 1, 1)),
    "all": ("1..-1 RW", (1, -1, 1)),
    "every second": ("1..-1/2 OW", (1, -1, 2)),
    "two": ("1 RW; 2 OW", (1, 2, 1)),
    "one and the rest": ("2 OW; 3..-1 RO", (2, -1, 1)),
    "one of them is behind a keyword": ("1 RW; STORE@6 OW", (1, 1, 1)),
    "counted": ("numkeys@1 RO", (0, 0, 0)),
}


@pytest.mark.parametrize(("keys", "expected"), RANGES.values(), ids=RANGES)
def test_command_info_s_three_numbers_follow_from_the_key_specifications(
    keys: str, expected: tuple[int, int, int]
) -> None:
    assert key_specs.fixed_range(key_specs.parse(keys)) == expected


def test_subcommands_hang_below_their_container() -> None:
    create, group, ack = row("XGROUP|CREATE"), bare("XGROUP"), row("XACK")

    built = command_table.build([create, group, ack])

    assert list(built) == [b"XGROUP", b"XACK"]
    assert group.subcommands == {b"CREATE": create}


def test_a_command_declared_twice_stops_the_start() -> None:
    with pytest.raises(AssertionError, match="XACK is declared twice"):
        command_table.build([row("XACK"), row("XACK")])


ARITIES = {"exactly": (3, [2, 3, 4], [3]), "at least": (-3, [2, 3, 4], [3, 4])}


@pytest.mark.parametrize(("arity", "counts", "fitting"), ARITIES.values(), ids=ARITIES)
def test_a_request_fits_by_its_number_of_words(arity: int, counts: list[int], fitting: list[int]) -> None:
    declared = row(arity=arity)

    assert [count for count in counts if declared.fits(count)] == fitting
