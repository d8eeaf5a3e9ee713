"""Places as numbers, beside numbers that are halved bit by bit."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.storage.types import geohash
from penstock.storage.types.geo_areas import Area
from tests.support.dialogue import Dialogue

LONGITUDES = st.floats(-180, 179.999999)
LATITUDES = st.floats(-85.05112878, 85.051128)


def halved(longitude: float, latitude: float) -> int:
    number = 0
    west, east, south, north = -180.0, 180.0, -85.05112878, 85.05112878
    for _ in range(26):
        middle, parallel = (west + east) / 2, (south + north) / 2
        number = number << 2 | (longitude >= middle) << 1 | (latitude >= parallel)
        west, east = (middle, east) if longitude >= middle else (west, middle)
        south, north = (parallel, north) if latitude >= parallel else (south, parallel)
    return number


@given(st.integers(0, 2**26 - 1), st.integers(0, 2**26 - 1))
def test_a_number_is_the_halves_in_which_the_middle_of_its_cell_lies(column: int, row: int) -> None:
    number = geohash.number_of(column, row)

    assert halved(*geohash.decoded(float(number))) == number


@given(st.integers(0, 2**52 - 1))
def test_the_middle_of_a_cell_is_reckoned_as_for_any_number(number: int) -> None:
    column, row = geohash.gathered(number >> 1), geohash.gathered(number)

    def middle(place: int, limit: float) -> float:
        return (geohash.edge(place, geohash.STEPS, limit) + geohash.edge(place + 1, geohash.STEPS, limit)) / 2

    assert geohash.decoded(float(number)) == (
        middle(column, geohash.LONGITUDE_MAX),
        middle(row, geohash.LATITUDE_MAX),
    )


@given(LONGITUDES, LATITUDES, LONGITUDES, LATITUDES, st.floats(-2, 2), st.floats(0, 2.1e7))
def test_a_place_is_in_a_circle_by_its_exact_distance(
    longitude: float, latitude: float, other: float, other_latitude: float, beyond_m: float, any_m: float
) -> None:
    """One area is made a circle again and again, as by GEOSEARCH with several BYRADIUS."""
    distance_m = geohash.distance_m(longitude, latitude, other, other_latitude)
    area = Area()
    area.longitude, area.latitude = longitude, latitude
    for radius_m in (any_m, distance_m, max(distance_m + beyond_m, 0.0), max(distance_m - 1e-6, 0.0)):
        area.make_circle(radius_m)
        assert area.distance_to(other, other_latitude) == (None if distance_m > radius_m else distance_m)


@given(LONGITUDES, LATITUDES)
def test_a_place_is_found_again_within_a_metre(longitude: float, latitude: float) -> None:
    found = geohash.decoded(float(geohash.encoded(longitude, latitude)))

    assert geohash.distance_m(longitude, latitude, *found) < 1


@given(LONGITUDES, LATITUDES, LONGITUDES, LATITUDES, st.floats(0, 2_000_000))
def test_what_is_within_a_circle_lies_in_one_of_its_cells(
    longitude: float, latitude: float, other_longitude: float, other_latitude: float, radius: float
) -> None:
    """Of circles that reach neither a pole nor the date line: Redis looks at nine cells, whatever they leave out."""
    area = Area()
    area.longitude, area.latitude = longitude / 2, latitude * 0.7
    area.make_circle(radius)
    place = (area.longitude + (other_longitude - longitude) / 40, area.latitude + (other_latitude - latitude) / 20)
    score = geohash.encoded(place[0], max(min(place[1], 85.0), -85.0))

    is_near = area.distance_to(*geohash.decoded(float(score))) is not None
    assert not is_near or any(least <= score < beyond for least, beyond in area.score_ranges())


@pytest.mark.parametrize(
    ("score", "number"), [(1.9, 1), (-1.0, 2**64 - 1), (inf, 0), (-inf, 2**63), (1e19, 10**19), (1e300, 0)]
)
def test_a_score_that_no_place_has_is_cut_as_the_machine_cuts_it(score: float, number: int) -> None:
    assert geohash.number_in(score) == number


def test_a_circle_without_an_end_covers_the_world(dialogue: Dialogue) -> None:
    dialogue("GEOADD k 0 0 middle 179 80 far -179 -80 farther")

    assert len(dialogue("GEOSEARCH k FROMLONLAT 10 10 BYRADIUS inf m")) == 3
