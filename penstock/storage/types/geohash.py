"""Places on the Earth as 52-bit numbers, the scores of a sorted set, and the distances between them.

Longitude and latitude are halved 26 times each. The bits of both are interleaved, longitude's the higher of each pair,
so that a square of any size is a range of numbers (Redis 8.6.3).
"""

from __future__ import annotations

from math import asin, cos, pi, sin, sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # for mypyc; Python ignores it

STEPS: Final = 26
BITS: Final = 2 * STEPS
CELLS: Final = 1 << STEPS  # along each axis
LONGITUDE_MAX: Final = 180.0
LATITUDE_MAX: Final = 85.05112878
LATITUDE_OF_TEXT: Final = 90.0  # GEOHASH answers standard geohashes
EARTH_RADIUS_M: Final = 6372797.560856
RADIANS: Final = pi / 180.0
ALPHABET: Final = b"0123456789bcdefghjkmnpqrstuvwxyz"
TEXT_LENGTH: Final = 11  # characters; for the last there are but two bits, and it is always `0`

_CELLS: Final = 2.0**STEPS
_NUMBERS: Final = 2.0**BITS  # as many as there are places
_BITS_63: Final = 1 << 63
_BITS_64: Final = (1 << 64) - 1
_EVEN: Final = 0x5555555555555555
_GATHERS: Final = (
    (1, 0x3333333333333333), (2, 0x0F0F0F0F0F0F0F0F), (4, 0x00FF00FF00FF00FF), (8, 0x0000FFFF0000FFFF),
    (16, 0x00000000FFFFFFFF),
)  # fmt: skip


def gathered(number: int) -> int:
    """The even bits of a number of 64."""
    number &= _EVEN
    for distance, mask in _GATHERS:
        number = (number | number >> distance) & mask
    return number


def cell_of(longitude: float, latitude: float, steps: int, latitude_max: float = LATITUDE_MAX) -> tuple[int, int]:
    """The column and the row of the cell in which a place is. At the upper limits it is one beyond the last."""
    across = (longitude + LONGITUDE_MAX) / (2 * LONGITUDE_MAX)
    up = (latitude + latitude_max) / (2 * latitude_max)
    return int(across * (1 << steps)), int(up * (1 << steps))


def number_of(column: int, row: int) -> int:
    return _spread(column) << 1 | _spread(row)


def _spread(number: i64) -> i64:
    """Spread the bits of a number (at most STEPS + 1 bits) to the even places. Compiled, it makes no objects."""
    number = (number | number << 16) & 0xFFF0000FFFF
    number = (number | number << 8) & 0xFF00FF00FF00FF
    number = (number | number << 4) & 0xF0F0F0F0F0F0F0F
    number = (number | number << 2) & 0x333333333333333
    return (number | number << 1) & 0x155555555555555


def encoded(longitude: float, latitude: float) -> int:
    """The number of a place."""
    column, row = cell_of(longitude, latitude, STEPS)
    return number_of(column, row)


def number_in(score: float) -> int:
    """The number of a place in any score, also one of ZADD: the double converted to an unsigned 64-bit integer."""
    if -_BITS_63 <= score < _BITS_63:
        return int(score) & _BITS_64
    if score < 0:
        return _BITS_63
    return int(score) if score <= _BITS_64 else 0


def decoded(score: float) -> tuple[float, float]:
    """The longitude and latitude of the middle of a score's cell."""
    if 0.0 <= score < _NUMBERS:
        place: i64 = int(score)
        return (
            _middle_of(float(_even_bits(place >> 1)), LONGITUDE_MAX),
            _middle_of(float(_even_bits(place)), LATITUDE_MAX),
        )
    number = number_in(score)
    column, row = gathered(number >> 1), gathered(number)
    longitude, latitude = _middle_of(float(column), LONGITUDE_MAX), _middle_of(float(row), LATITUDE_MAX)
    return (min(max(longitude, -LONGITUDE_MAX), LONGITUDE_MAX), min(max(latitude, -LATITUDE_MAX), LATITUDE_MAX))


def _even_bits(number: i64) -> i64:
    """As `gathered`, for a number of BITS bits. Compiled, it makes no objects."""
    number &= 0x5555555555555
    number = (number | number >> 1) & 0x3333333333333
    number = (number | number >> 2) & 0xF0F0F0F0F0F0F
    number = (number | number >> 4) & 0xFF00FF00FF00FF
    number = (number | number >> 8) & 0xFFFF0000FFFF
    return (number | number >> 16) & 0xFFFFFFFF


def _middle_of(place: float, limit: float) -> float:
    """The middle of a column or row, in degrees: between its `edge` and the next one's."""
    begin = -limit + place / _CELLS * (2 * limit)
    end = -limit + (place + 1.0) / _CELLS * (2 * limit)
    return (begin + end) / 2


def edge(place: int, steps: int, limit: float) -> float:
    """Where the column or row of a number begins, in degrees; the next one's begin is its end."""
    return -limit + place / (1 << steps) * (2 * limit)


def text_of(score: float) -> bytes:
    """The standard geohash of a place, 11 characters.

    >>> text_of(3479099956230698.0)
    b'sqc8b49rny0'
    """
    longitude, latitude = decoded(score)
    column, row = cell_of(longitude, latitude, STEPS, LATITUDE_OF_TEXT)
    number = number_of(column, row)
    shifts = range(BITS - 5, BITS - 5 * TEXT_LENGTH, -5)
    return bytes([ALPHABET[number >> shift & 31] for shift in shifts]) + b"0"


# -- distances -------------------------------------------------------------------------------------------------------


def distance_m(longitude: float, latitude: float, other_longitude: float, other_latitude: float) -> float:
    """Metres between two places, on a sphere."""
    near = nearness(longitude, latitude, other_longitude, other_latitude)
    return distance_of(near, longitude, latitude, other_longitude, other_latitude)


def distance_of(near: float, longitude: float, latitude: float, other_longitude: float, other_latitude: float) -> float:
    """As `distance_m`, of two places whose nearness is known."""
    if (other_longitude * RADIANS - longitude * RADIANS) / 2 == 0.0:
        return latitude_distance_m(latitude, other_latitude)
    return 2.0 * EARTH_RADIUS_M * asin(sqrt(near))


def nearness(longitude: float, latitude: float, other_longitude: float, other_latitude: float) -> float:
    """The square of the sine of half the angle between two places: it grows with their distance."""
    lower, upper = latitude * RADIANS, other_latitude * RADIANS
    v = sin((other_longitude * RADIANS - longitude * RADIANS) / 2)
    u = sin((upper - lower) / 2)
    return u * u + cos(lower) * cos(upper) * v * v


def latitude_distance_m(latitude: float, other_latitude: float) -> float:
    """Metres between two parallels."""
    return EARTH_RADIUS_M * abs(other_latitude * RADIANS - latitude * RADIANS)
