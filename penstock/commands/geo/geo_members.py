"""GEOADD, GEOPOS, GEODIST, GEOHASH: places as members of a sorted set with their positions as scores.

Tests: transcripts keysizes; cases commands/test_geo; law against_redis/test_new_families_beside_redis; model
storage/test_geohashes.
"""

from typing import Final

from penstock.commands.sorted_sets.zset_adding import zadd
from penstock.commands.sorted_sets.zset_values import read_sorted_set
from penstock.engine import refusals
from penstock.engine.context import Context
from penstock.engine.numbers import float_word, score_text
from penstock.engine.table.command_table import command
from penstock.errors import ReplyError
from penstock.protocol import reply
from penstock.storage.types import geohash

UNITS: Final = {b"m": 1.0, b"km": 1000.0, b"ft": 0.3048, b"mi": 1609.34}  # in metres
UNIT_HISTORY: Final = ("7.0.0", "Added support for uppercase unit names.")


def metres_in(unit: bytes) -> float:
    """How many metres a unit has."""
    metres = UNITS.get(unit.lower())
    if metres is None:
        raise ReplyError(b"ERR unsupported unit provided. please use M, KM, FT, MI")
    return metres


def read_place(longitude: bytes, latitude: bytes) -> tuple[float, float]:
    """Longitude and latitude in degrees, refused where there is no such place."""
    east, north = float_word(longitude), float_word(latitude)
    if abs(east) > geohash.LONGITUDE_MAX or abs(north) > geohash.LATITUDE_MAX:
        raise ReplyError(b"ERR invalid longitude,latitude pair %f,%f" % (east, north))
    return east, north


def place_reply(longitude: float, latitude: float, resp3: bool) -> bytes:
    return b"*2\r\n" + reply.double(score_text(longitude), resp3) + reply.double(score_text(latitude), resp3)


def distance_reply(distance: float) -> bytes:
    """A bulk string in both protocols."""
    text = b"%05d" % round(distance * 10_000.0)  # halves to even, after the product is rounded, as Redis
    return reply.bulk(b"%b.%b" % (text[:-4], text[-4:]))


@command(
    "GEOADD key condition:[NX|XX]@6.2.0 [change:CH@6.2.0] "
    "data:(longitude:double latitude:double member) [longitude latitude member ...]",
    "3.2.0 write denyoom | keys 1 RW update",
    "Adds places to a sorted set, or moves those that it has.",
    "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
    history=(("6.2.0", "Added the `CH`, `NX` and `XX` options."),),
)
def geoadd(ctx: Context, args: list[bytes]) -> bytes:
    """It is carried out, and logged, as the ZADD that it means (Redis 8.6.3)."""
    at = 2
    options: list[bytes] = []
    while at < len(args) and args[at].upper() in (b"NX", b"XX", b"CH"):
        options.append(args[at])
        at += 1
    given = {option.upper() for option in options}
    if (len(args) - at) % 3 or {b"NX", b"XX"} <= given:
        raise refusals.syntax()
    words = [b"zadd", args[1], *options]
    for first in range(at, len(args), 3):
        longitude, latitude = read_place(args[first], args[first + 1])
        words += (b"%d" % geohash.encoded(longitude, latitude), args[first + 2])
    return zadd(ctx, words)


@command(
    "GEOPOS key [member [member ...]]",
    "3.2.0 readonly | keys 1 RO access",
    "Tells longitude and latitude of places.",
    "O(1) for each member requested.",
)
def geopos(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    answers: list[bytes] = []
    for member in args[2:]:
        score = None if zset is None else zset.score(member)
        if score is None:
            answers.append(reply.null_array(ctx.resp3))
        else:
            longitude, latitude = geohash.decoded(score)
            answers.append(place_reply(longitude, latitude, ctx.resp3))
    return reply.array(answers)


@command(
    "GEOHASH key [member [member ...]]",
    "3.2.0 readonly | keys 1 RO access",
    "Tells the geohashes of places, as texts.",
    "O(1) for each member requested.",
)
def geohash_texts(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    answers: list[bytes] = []
    for member in args[2:]:
        score = None if zset is None else zset.score(member)
        answers.append(reply.null(ctx.resp3) if score is None else reply.bulk(geohash.text_of(score)))
    return reply.array(answers)


@command(
    "GEODIST key member1 member2 unit:[M|KM|FT|MI]",
    "3.2.0 readonly | keys 1 RO access",
    "Tells the distance between two places.",
)
def geodist(ctx: Context, args: list[bytes]) -> bytes:
    if len(args) > 5:
        raise refusals.syntax()
    metres = metres_in(args[4]) if len(args) == 5 else 1.0
    zset = read_sorted_set(ctx, args[1])
    if zset is None:
        return reply.null(ctx.resp3)
    one, other = zset.score(args[2]), zset.score(args[3])
    if one is None or other is None:
        return reply.null(ctx.resp3)
    longitude, latitude = geohash.decoded(one)
    other_longitude, other_latitude = geohash.decoded(other)
    return distance_reply(geohash.distance_m(longitude, latitude, other_longitude, other_latitude) / metres)
