"""Searches for places in a circle or a box: GEOSEARCH, GEOSEARCHSTORE, and GEORADIUS and its kin before them.

Tests: cases commands/test_geo; law against_redis/test_new_families_beside_redis; model storage/test_geohashes.
"""

from typing import Final

from penstock.commands.geo.geo_arguments import (
    MEMBER_AT,
    RADIUS_AT,
    SEARCHED,
    STORED,
    Order,
    Search,
    find_keys_around_member,
    find_keys_around_place,
    read_georadius,
    read_geosearch,
)
from penstock.commands.geo.geo_members import UNIT_HISTORY, distance_reply, place_reply
from penstock.commands.sorted_sets.zset_values import Limits, read_sorted_set, store
from penstock.engine.context import Context
from penstock.engine.table.command_table import command
from penstock.protocol import reply
from penstock.storage.types import geohash
from penstock.storage.types.sorted_sets import Pair, ScoreBound, SortedSet

CENTRE: Final = "from:<FROMMEMBER member|fromlonlat:FROMLONLAT (longitude:double latitude:double)>"
SHAPE: Final = (
    "by:<circle:(BYRADIUS radius:double unit:<M|KM|FT|MI>)|box:(BYBOX width:double, height:double unit:<M|KM|FT|MI>)>"
)
ORDER: Final = "order:[ASC|DESC]"
COUNT: Final = "count-block:[COUNT count [ANY]]"
WITH: Final = "[WITHCOORD] [WITHDIST] [WITHHASH]"
RADIUS: Final = "radius:double unit:<M|KM|FT|MI>"
STORE: Final = "store:[storekey:STORE key|storedistkey:STOREDIST key]"
COMPLEXITY: Final = (
    "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around the shape provided as"
    " the filter and M is the number of items inside the shape"
)
RADIUS_COMPLEXITY: Final = (
    "O(N+log(M)) where N is the number of elements inside the bounding box of the circular area delimited by center"
    " and radius and M is the number of items inside the index."
)
RADIUS_HISTORY: Final = (("6.2.0", "Added the `ANY` option for `COUNT`."), UNIT_HISTORY)


class Found:
    """A place that was found: metres from the middle, and where it is."""

    __slots__ = ("distance_m", "latitude", "longitude", "member", "score")

    def __init__(self, member: bytes, score: float, distance_m: float, longitude: float, latitude: float) -> None:
        self.member = member
        self.score = score
        self.distance_m = distance_m
        self.longitude = longitude
        self.latitude = latitude


def _distance_of(found: Found) -> float:
    return found.distance_m


def _found(zset: SortedSet, search: Search) -> list[Found]:
    """The places in the area, in the order asked for.  O(places in the nine cells around it)."""
    most = search.limit if search.stops_early else len(zset)
    places: list[Found] = []
    for least, beyond in search.area.score_ranges():
        start, stop = zset.score_range(ScoreBound(least, False), ScoreBound(beyond, True))
        for score, member in zset.pairs_at(start, stop):
            longitude, latitude = geohash.decoded(score)
            distance_m = search.area.distance_to(longitude, latitude)
            if distance_m is not None:
                places.append(Found(member, score, distance_m, longitude, latitude))
                if len(places) == most:
                    break
        if len(places) == most:
            break
    if search.order is not Order.AS_FOUND:
        places.sort(key=_distance_of, reverse=search.order is Order.FARTHEST_FIRST)
    return places[: search.limit] if search.limit else places


def _carried_out(ctx: Context, args: list[bytes], zset: SortedSet | None, search: Search, event: bytes) -> bytes:
    places = [] if zset is None else _found(zset, search)
    if search.target is None:
        return _reply(places, search, ctx.resp3)
    pairs: list[Pair] = []
    for place in places:
        pairs.append((place.distance_m / search.metres if search.stores_distances else place.score, place.member))
    pairs.sort()
    limits = Limits(ctx)
    kept = limits.set_of(pairs, limits.exceeded_by([member for _, member in pairs]))
    return store(ctx, search.target, kept, event, args)


def _reply(places: list[Found], search: Search, resp3: bool) -> bytes:
    """Names, or arrays of name, distance, score, place: as far as they were asked for."""
    count = 1 + search.with_distance + search.with_score + search.with_place
    if count == 1:
        return reply.bulks([place.member for place in places])
    parts = [reply.array_header(len(places))]
    for place in places:
        parts.append(reply.array_header(count))
        parts.append(reply.bulk(place.member))
        if search.with_distance:
            parts.append(distance_reply(place.distance_m / search.metres))
        if search.with_score:
            parts.append(reply.integer(geohash.number_in(place.score)))
        if search.with_place:
            parts.append(place_reply(place.longitude, place.latitude, resp3))
    return b"".join(parts)


@command(
    f"GEOSEARCH key {CENTRE} {SHAPE} {ORDER} {COUNT} {WITH}",
    "6.2.0 readonly | keys 1 RO access",
    "Answers the places of a sorted set that are in a circle or a box.",
    COMPLEXITY,
    history=(UNIT_HISTORY,),
)
def geosearch(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    return _carried_out(ctx, args, zset, read_geosearch(args, zset, 2, None), b"")


@command(
    f"GEOSEARCHSTORE destination:key source:key {CENTRE} {SHAPE} {ORDER} {COUNT} [STOREDIST]",
    "6.2.0 write denyoom | keys 1 OW update; 2 RO access",
    "Stores the places of a sorted set that are in a circle or a box, or their distances.",
    COMPLEXITY,
    history=(UNIT_HISTORY,),
)
def geosearchstore(ctx: Context, args: list[bytes]) -> bytes:
    zset = read_sorted_set(ctx, args[2])
    return _carried_out(ctx, args, zset, read_geosearch(args, zset, 3, args[1]), b"geosearchstore")


# -- before GEOSEARCH ------------------------------------------------------------------------------------------------


def _around(ctx: Context, args: list[bytes], by_member: bool, may_store: bool) -> bytes:
    zset = read_sorted_set(ctx, args[1])
    search = read_georadius(args, zset, by_member, may_store)
    return _carried_out(ctx, args, zset, search, b"georadiusstore")


@command(
    f"GEORADIUS key longitude:double latitude:double {RADIUS} {WITH} count-block:[COUNT count "
    f"[ANY@6.2.0]] {ORDER} {STORE}",
    f"3.2.0 write denyoom movablekeys | keys 1 {SEARCHED}; STORE@{RADIUS_AT} {STORED}; STOREDIST@{RADIUS_AT} {STORED}",
    "Answers or stores the places of a sorted set that are in a circle around a place.",
    RADIUS_COMPLEXITY,
    find_keys=find_keys_around_place,
    history=RADIUS_HISTORY,
    deprecated=("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"),
)
def georadius(ctx: Context, args: list[bytes]) -> bytes:
    return _around(ctx, args, by_member=False, may_store=True)


@command(
    f"GEORADIUS_RO key longitude:double latitude:double {RADIUS} {WITH} count-block:[COUNT count [ANY@6.2.0]] {ORDER}",
    "3.2.10 readonly | keys 1 RO access",
    "Answers the places of a sorted set that are in a circle around a place.",
    RADIUS_COMPLEXITY,
    history=RADIUS_HISTORY,
    deprecated=("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument"),
)
def georadius_ro(ctx: Context, args: list[bytes]) -> bytes:
    return _around(ctx, args, by_member=False, may_store=False)


@command(
    f"GEORADIUSBYMEMBER key member {RADIUS} {WITH} {COUNT} {ORDER} {STORE}",
    f"3.2.0 write denyoom movablekeys | keys 1 {SEARCHED}; STORE@{MEMBER_AT} {STORED}; STOREDIST@{MEMBER_AT} {STORED}",
    "Answers or stores the places of a sorted set that are in a circle around one of them.",
    RADIUS_COMPLEXITY,
    find_keys=find_keys_around_member,
    history=RADIUS_HISTORY,
    deprecated=("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments"),
)
def georadiusbymember(ctx: Context, args: list[bytes]) -> bytes:
    return _around(ctx, args, by_member=True, may_store=True)


@command(
    f"GEORADIUSBYMEMBER_RO key member {RADIUS} {WITH} {COUNT} {ORDER}",
    "3.2.10 readonly | keys 1 RO access",
    "Answers the places of a sorted set that are in a circle around one of them.",
    RADIUS_COMPLEXITY,
    history=RADIUS_HISTORY,
    deprecated=("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
)
def georadiusbymember_ro(ctx: Context, args: list[bytes]) -> bytes:
    return _around(ctx, args, by_member=True, may_store=False)
