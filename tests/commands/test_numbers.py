"""Doubles and long doubles as words: what Redis 8.6.3 read and wrote."""

import math
import re
from fractions import Fraction
from math import ceil, trunc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.commands.common import timeouts
from penstock.engine import numbers, shortest_double
from penstock.errors import ReplyError

NOW_MS = 1_700_000_000_000

DOUBLES_READ = [
    (b"1", 1.0),
    (b"+1", 1.0),
    (b".5", 0.5),
    (b"5.", 5.0),
    (b"-.5", -0.5),
    (b"-5.", -5.0),
    (b"-12", -12.0),
    (b"-122.41940000000001", -122.41940000000001),
    (b"9007199254740993", 9007199254740992.0),
    (b"-9007199254740995", -9007199254740996.0),
    (b"999999999999999999", 1e18),
    (b"1E+5", 1e5),
    (b"1.e5", 1e5),
    (b"00012", 12.0),
    (b"1e0000000000000000001", 10.0),
    (b"0e999999", 0.0),
    (b"4e-324", 5e-324),
    (b"0" * 6000 + b"1", 1.0),
    (b"0x10", 16.0),
    (b"-0x10", -16.0),
    (b"0X1.8P1", 3.0),
    (b"0x.8", 0.5),
    (b"0x1.", 1.0),
    (b"0x1.8p-1075", 5e-324),
    (b"inf", math.inf),
    (b"-INFINITY", -math.inf),
    (b"+Infinity", math.inf),
]
NO_DOUBLES = [
    b"",
    b" 1",
    b"1 ",
    b"\t1",
    b"1\n",
    b"1\0",
    b"+",
    b"-",
    b".",
    b"++1",
    b"1e",
    b"1e+",
    b"e5",
    b".e5",
    b"1e5.0",
    b"1f",
    b"1_000",
    b"1,5",
    b"\xd9\xa1",
    b"infin",
    b"inf\0",
    b"--inf",
    b"nan",
    b"-nan",
    b"nan(123)",
    b"0x",
    b"0xg",
    b"0x.p1",
    b"0x1p",
    b"0x1_0",
    b"1e309",
    b"-1e309",
    b"1.8e308",
    b"2e-324",
    b"1e-400",
    b"1" * 400,
    b"1e99999999999999999999",
    b"0x1p1024",
    b"0x1p-1075",
]
DOUBLES_WRITTEN = [
    (0.0, b"0"),
    (-0.0, b"-0"),
    (3.0, b"3"),
    (-3.5, b"-3.5"),
    (0.1, b"0.1"),
    (1e21, b"1e+21"),
    (8e18, b"8e+18"),
    (math.inf, b"inf"),
    (-math.inf, b"-inf"),
    (2.0**53, b"9007199254740992"),
    (2.0**62, b"4611686018427387904"),
    (math.nextafter(2.0**62, math.inf), b"4611686018427389000"),
    (12345678901234567890123.0, b"12345678901234568000000"),
    (261107229295898630000000.0, b"261107229295898630000000"),
    (6.457561735590e18, b"6457561735590000000"),
    (5.0858302901e18, b"5.0858302901e+18"),
    (6e-7, b"6e-7"),
    (0.000006, b"0.000006"),
    (0.000213, b"0.000213"),
    (7.14e-5, b"7.14e-5"),
    (2.756e-4, b"2.756e-4"),
    (0.0014233457282309958, b"0.0014233457282309958"),
    (34317.164644, b"34317.164644"),
    (5e-324, b"5e-324"),
    (1.7976931348623157e308, b"1.7976931348623157e+308"),
]
BEYOND_THE_SHORTEST = [
    (6.161199887972498e26, b"6.1611998879724983e+26"),
    (1057664960376728.8, b"1057664960376728.7"),
    (9.000218296816711e-261, b"9.000218296816712e-261"),
    (61859647458.98666, b"61859647458.986656"),
    (93690447379723.38, b"93690447379723.37"),
    (2.5202e21, b"2520199999999999700000"),
    (6.415757328183088e-114, b"6.4157573281830884e-114"),
]
SUMS = [
    (b"10.5", b"0.1", b"10.6"),
    (b"0.1", b"0.2", b"0.3"),
    (b"5.0e3", b"200", b"5200"),
    (b"3", b"-3", b"0"),
    (b"-0", b"-0", b"0"),
    (b"-1e-30", b"-1e-30", b"0"),
    (b"9007199254740993", b"0", b"9007199254740993"),
    (b"1." + b"1" * 1000, b"0", b"1.11111111111111111"),
    (b"0x1.fffffffffffff8p0", b"0", b"1.99999999999999989"),
    (b"12345678901234567890123", b"0", b"12345678901234567889920"),
    (
        b"1e200",
        b"0",
        b"100000000000000000002458586534161025661508068040050002887327500487325785432383926208372890736129198739"
        b"813658147359652238566592960617854587787845326097835852628442219969983473365844529789269081145212928",
    ),
]
NO_LONG_DOUBLES = [
    b"",
    b" 1",
    b"nan",
    b"1e",
    b"0x",
    b"1.19e4932",
    b"1e-4951",
    b"0x1p16384",
    b"0x1p-16446",
    b"0" * 5119 + b"1",
]
TIMEOUTS = [(b"0", 0), (b"-0.0001", 0), (b"0.0001", NOW_MS + 1), (b"1.5", NOW_MS + 1500), (b"0x10", NOW_MS + 16000)]
NO_TIMEOUTS = [
    (b"abc", b"ERR timeout is not a float or out of range"),
    (b"nan", b"ERR timeout is not a float or out of range"),
    (b"-1", b"ERR timeout is negative"),
    (b"-inf", b"ERR timeout is negative"),
    (b"inf", b"ERR timeout is out of range"),
    (b"1e400", b"ERR timeout is out of range"),
    (b"9223372036854775", b"ERR timeout is out of range"),
]


@pytest.mark.parametrize(("word", "number"), DOUBLES_READ)
def test_a_double_is_read_in_every_notation(word: bytes, number: float) -> None:
    assert numbers.float_word(word) == number


@pytest.mark.parametrize("word", NO_DOUBLES)
def test_what_is_no_double_is_refused(word: bytes) -> None:
    with pytest.raises(ReplyError, match="ERR value is not a valid float"):
        numbers.float_word(word)


@pytest.mark.parametrize(("number", "text"), DOUBLES_WRITTEN + BEYOND_THE_SHORTEST)
def test_a_double_is_written_as_redis_writes_it(number: float, text: bytes) -> None:
    assert numbers.score_text(number) == text


@given(st.floats(allow_nan=False))
def test_a_double_that_was_written_is_read_as_itself(number: float) -> None:
    assert numbers.float_word(numbers.score_text(number)) == number


@given(st.floats(min_value=5e-324, allow_infinity=False))
def test_digits_times_their_power_of_ten_are_the_number(number: float) -> None:
    made, power = shortest_double.digits(number)

    assert float(f"{made}e{power}") == number
    assert len(str(made)) <= 17


DOUBLES = st.one_of(
    st.floats(min_value=5e-324, allow_infinity=False),
    st.decimals(min_value="0.0001", max_value=10**9, places=4).map(float),
    st.integers(-1070, 1020).map(lambda exponent: math.ldexp(1.0, exponent)),
)


@given(DOUBLES)
def test_machine_words_make_the_same_digits_as_numbers_of_any_size(number: float) -> None:
    by_words = shortest_double.digits_by_words(number)

    assert by_words in ((0, 0), shortest_double.digits_by_numbers(number))
    assert by_words != (0, 0) or number < 2.3e-308 or len(str(shortest_double.digits(number)[0])) > 16


@pytest.mark.parametrize(("one", "other", "text"), SUMS)
def test_long_doubles_are_added_with_64_bits(one: bytes, other: bytes, text: bytes) -> None:
    total = numbers.long_double_sum(numbers.long_double(one), numbers.long_double(other))

    assert total is not None
    assert numbers.long_double_text(total) == text


WORDS = st.from_regex(rb"[+-]?[0-9]{1,12}(\.[0-9]{0,12})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@given(
    WORDS
    | st.sampled_from([b"", b"-", b".", b"5.", b"-.5", b"--1", b"1.-1", b"0.0", b"-0", b"1" * 19, b"0." + b"1" * 19])
)
def test_a_plain_decimal_is_read_as_the_fraction_that_it_means(word: bytes) -> None:
    found = numbers.plain_decimal(word)

    is_plain = re.fullmatch(rb"-?[0-9]{1,18}(\.[0-9]{1,18})?", word) is not None
    assert (found is not None) == is_plain
    assert found is None or Fraction(*found) == Fraction(word.decode())


def nearest(exact: Fraction) -> Fraction:
    """The long double that is nearest to a number, which must be neither very large nor very small."""
    unit = Fraction(1)
    while abs(exact) / unit >= 2**64:
        unit *= 2
    while exact and abs(exact) / unit < 2**63:
        unit /= 2
    return round(exact / unit) * unit


def finite(number: numbers.LongDouble | None) -> numbers.LongDouble:
    assert number is not None
    return number


@given(WORDS, WORDS)
def test_long_doubles_are_reckoned_as_fractions_that_are_rounded_at_each_step(one: bytes, other: bytes) -> None:
    exact = [nearest(Fraction(word.decode())) for word in (one, other)]
    held = [finite(numbers.long_double(word)) for word in (one, other)]
    for number, fraction in zip(held, exact, strict=True):
        assert number.made * Fraction(2) ** number.exponent == fraction
        assert (number.trunc(), number.ceil()) == (trunc(fraction), ceil(fraction))
        assert number.is_whole() == (fraction.denominator == 1)
    assert (held[0] < held[1]) == (exact[0] < exact[1])
    total = finite(numbers.long_double_sum(*held))
    less = finite(numbers.long_double_difference(held[0], held[1]))
    assert total.made * Fraction(2) ** total.exponent == nearest(exact[0] + exact[1])
    assert less.made * Fraction(2) ** less.exponent == nearest(exact[0] - exact[1])
    shown = Fraction(numbers.long_double_text(total).decode())
    assert shown == Fraction(round(nearest(exact[0] + exact[1]) * 10**17), 10**17)


def test_a_long_double_of_thousands_of_digits_is_written_in_full() -> None:
    largest = numbers.long_double(b"1.18e4932")

    assert largest is not None
    assert len(numbers.long_double_text(largest)) == 4933


@pytest.mark.parametrize("word", NO_LONG_DOUBLES)
def test_what_is_no_long_double_is_refused(word: bytes) -> None:
    with pytest.raises(ReplyError, match="ERR hash value is not a float"):
        numbers.long_double(word, b"ERR hash value is not a float")


def test_an_infinite_long_double_and_all_sums_with_it_are_nothing() -> None:
    assert numbers.long_double(b"-inf") is None
    assert numbers.long_double_sum(None, numbers.LongDouble(1, 0)) is None
    assert numbers.long_double_sum(numbers.long_double(b"1e4932"), numbers.long_double(b"1e4932")) is None


@pytest.mark.parametrize(("word", "deadline_ms"), TIMEOUTS)
def test_a_timeout_in_seconds_counts_started_milliseconds(word: bytes, deadline_ms: int) -> None:
    assert timeouts.deadline_in_seconds(word, NOW_MS) == deadline_ms


@pytest.mark.parametrize(("word", "text"), NO_TIMEOUTS)
def test_what_is_no_timeout_in_seconds_is_refused(word: bytes, text: bytes) -> None:
    with pytest.raises(ReplyError) as refusal:
        timeouts.deadline_in_seconds(word, NOW_MS)

    assert refusal.value.text == text


DECIMALS = st.one_of(
    st.decimals(-50, 50, allow_nan=False, places=2),
    st.decimals(-50, 50, allow_nan=False),
    st.decimals(-(10**6), 10**6, allow_nan=False, places=1),
    st.integers(-(10**18), 10**18),
    st.integers(-(10**8), 10**8).map(lambda eighths: Fraction(eighths, 8)).map(float),
).map(lambda number: f"{number:f}".encode() if not isinstance(number, int) else b"%d" % number)


def rounded_sum(one: bytes, other: bytes) -> bytes:
    total = numbers.long_double_sum(numbers.long_double(one), numbers.long_double(other))
    assert total is not None
    return numbers.long_double_text(total)


@given(DECIMALS, DECIMALS)
@example(b"20", b"-19.99999999999999999")
@example(b"0.1", b"-0.10")
@example(b"-0", b"-0.0")
@example(b"007.50", b"0.000")
@example(b"3999999.999999999999", b"0.00000000000000001")
@example(b"999999999999999999", b"999999999999999999")
def test_a_sum_of_decimals_is_that_of_the_long_doubles(one: bytes, other: bytes) -> None:
    assert numbers.exact_sum(one, other) in {None, rounded_sum(one, other)}


@given(st.integers(-2000, 2000), st.integers(-2000, 2000), st.integers(0, 17), st.integers(0, 17))
def test_a_sum_of_small_decimals_is_taken(one: int, other: int, decimals: int, other_decimals: int) -> None:
    words = [
        f"{made / 100 / 10**places:.{places + 2 if places < 16 else 17}f}".encode()
        for made, places in ((one, decimals), (other, other_decimals))
    ]
    assert numbers.exact_sum(*words) == rounded_sum(*words)


@pytest.mark.parametrize(
    "word", [b"", b"-", b".5", b"5.", b"+5", b"1e3", b"0x10", b"inf", b"1" * 19, b"0." + b"1" * 18]
)
def test_other_words_are_no_plain_decimals(word: bytes) -> None:
    assert numbers.exact_sum(word, b"1") is None
    assert numbers.exact_sum(b"1", word) is None
