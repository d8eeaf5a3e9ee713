"""Circles and boxes on the Earth, and the ranges of scores in which their places lie.

An area is covered by a cell of a size like its own, and the eight around it: nine ranges of scores. The order in which
they are looked through is told by searches without an order, so cells are chosen as Redis 8.6.3 chooses them.
"""

from math import cos, isfinite, nan, sin, sqrt
from typing import Final

from penstock.storage.types.geohash import (
    BITS,
    EARTH_RADIUS_M,
    LATITUDE_MAX,
    LONGITUDE_MAX,
    RADIANS,
    STEPS,
    cell_of,
    distance_m,
    distance_of,
    edge,
    latitude_distance_m,
    nearness,
    number_of,
)

HALF_EQUATOR_M: Final = 20037726.37  # as Redis has it
UNSURE_M: Final = 1.0  # farther than this beyond a circle, a place is outside without a look at its exact distance
EVERYWHERE: Final = 2.0  # more than any `nearness`
FAR_NORTH: Final = 66.0  # degrees from which on cells are narrow
FARTHER_NORTH: Final = 80.0

NEIGHBOURS: Final = (  # columns to the east, rows to the north, in the order of the search
    (0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1),
)  # fmt: skip


class Area:
    """A circle, or a box with sides along meridians and parallels.

    radius_m: of the circle; of a box, the half of its diagonal. half_width_m, half_height_m: the radius twice, for a
    circle.
    """

    __slots__ = ("_degrees", "_reach", "half_height_m", "half_width_m", "is_box", "latitude", "longitude", "radius_m")

    def __init__(self) -> None:
        self.longitude = 0.0
        self.latitude = 0.0
        self.is_box = False
        self.radius_m = 0.0
        self.half_width_m = 0.0
        self.half_height_m = 0.0
        self._degrees = 180.0  # how many of latitude a place inside can be away
        self._reach = EVERYWHERE  # how far `nearness` of a place inside can be

    def make_circle(self, radius_m: float) -> None:
        self.radius_m = self.half_width_m = self.half_height_m = radius_m
        self._degrees = (radius_m + UNSURE_M) / EARTH_RADIUS_M / RADIANS
        self._reach = EVERYWHERE
        if radius_m < EARTH_RADIUS_M:  # the sine grows up to there
            reach = sin((radius_m + UNSURE_M) / EARTH_RADIUS_M / 2)
            self._reach = reach * reach

    def make_box(self, width_m: float, height_m: float) -> None:
        self.is_box = True
        self.half_width_m, self.half_height_m = width_m / 2, height_m / 2
        self.radius_m = sqrt(self.half_width_m * self.half_width_m + self.half_height_m * self.half_height_m)

    def distance_to(self, longitude: float, latitude: float) -> float | None:
        """Metres from the middle to a place; None where it is outside."""
        if self.is_box:
            if latitude_distance_m(self.latitude, latitude) > self.half_height_m:
                return None
            if distance_m(self.longitude, latitude, longitude, latitude) > self.half_width_m:
                return None
            return distance_m(self.longitude, self.latitude, longitude, latitude)
        north = latitude - self.latitude
        if north > self._degrees or -north > self._degrees:
            return None
        near = nearness(self.longitude, self.latitude, longitude, latitude)
        if near > self._reach:
            return None  # most are, and the arc needs a call of Python's
        distance = distance_of(near, self.longitude, self.latitude, longitude, latitude)
        return None if distance > self.radius_m else distance

    def score_ranges(self) -> list[tuple[float, float]]:
        """The scores, from and before, of the cells that cover the area, in the order of the search."""
        steps = _steps(self.radius_m, self.latitude)
        west, south, east, north = self._bounds()
        column, row = cell_of(self.longitude, self.latitude, steps)
        if steps > 1 and not _reaches(column, row, steps, west, south, east, north):
            steps -= 1
            column, row = cell_of(self.longitude, self.latitude, steps)
        cells = 1 << steps
        covered = [True, True, True, True]
        if steps > 1:
            covered = [
                not edge(column, steps, LONGITUDE_MAX) < west,
                not edge(row, steps, LATITUDE_MAX) < south,
                not edge(column + 1, steps, LONGITUDE_MAX) > east,
                not edge(row + 1, steps, LATITUDE_MAX) > north,
            ]
        ranges: list[tuple[float, float]] = []
        last = -1
        for across, up in NEIGHBOURS:
            if (
                (across < 0 and not covered[0]) or (up < 0 and not covered[1])
                or (across > 0 and not covered[2]) or (up > 0 and not covered[3])
            ):  # fmt: skip
                continue
            number = number_of((column + across) % cells if across else column, (row + up) % cells if up else row)
            if number != last:  # in a world of two by two cells, both neighbours are the same
                shift = BITS - 2 * steps
                ranges.append((float(number << shift), float((number + 1) << shift)))
                last = number
        return ranges

    def _bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north in degrees, with the largest width of the area."""
        up = self.half_height_m / EARTH_RADIUS_M / RADIANS
        nearer_pole = self.latitude - up if self.latitude < 0 else self.latitude + up
        across = nan  # of a box that has no end, no bound is passed
        if isfinite(nearer_pole):
            across = self.half_width_m / EARTH_RADIUS_M / cos(nearer_pole * RADIANS) / RADIANS
        return self.longitude - across, self.latitude - up, self.longitude + across, self.latitude + up


def _steps(radius_m: float, latitude: float) -> int:
    """How often the world is halved for cells as large as a circle."""
    if radius_m == 0:
        return STEPS
    steps = 1
    while radius_m < HALF_EQUATOR_M:
        radius_m *= 2
        steps += 1
    steps -= 2
    if abs(latitude) > FAR_NORTH:
        steps -= 1
        if abs(latitude) > FARTHER_NORTH:
            steps -= 1
    return min(max(steps, 1), STEPS)


def _reaches(column: int, row: int, steps: int, west: float, south: float, east: float, north: float) -> bool:
    """Whether the cells around one reach to all bounds; those at the edge of the world are its other edge's."""
    cells = 1 << steps
    return not (
        edge((row + 1) % cells + 1, steps, LATITUDE_MAX) < north
        or edge((row - 1) % cells, steps, LATITUDE_MAX) > south
        or edge((column + 1) % cells + 1, steps, LONGITUDE_MAX) < east
        or edge((column - 1) % cells, steps, LONGITUDE_MAX) > west
    )
