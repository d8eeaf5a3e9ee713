"""Reads the arguments of a search for places: GEOSEARCH's, and those of the older GEORADIUS."""

from enum import Enum
from typing import Final

from penstock.commands.geo.geo_members import metres_in, read_place
from penstock.engine import arguments, refusals
from penstock.engine.numbers import float_word
from penstock.engine.table.key_place import KeyPlace
from penstock.engine.table.option_table import OptionTable
from penstock.errors import ReplyError
from penstock.storage.types import geohash
from penstock.storage.types.geo_areas import Area
from penstock.storage.types.sorted_sets import SortedSet

NO_LIMIT: Final = 0
COMMON_OPTIONS: Final = {b"WITHDIST": 0, b"WITHHASH": 0, b"WITHCOORD": 0, b"ANY": 0, b"ASC": 0, b"DESC": 0, b"COUNT": 1}
SEARCH_OPTIONS: Final = OptionTable(
    COMMON_OPTIONS | {b"FROMMEMBER": 1, b"FROMLONLAT": 2, b"BYRADIUS": 2, b"BYBOX": 3, b"STOREDIST": 0}
)
TARGETS: Final = (b"STORE", b"STOREDIST")  # of GEORADIUS
RADIUS_OPTIONS: Final = OptionTable(COMMON_OPTIONS | dict.fromkeys(TARGETS, 1))
RADIUS_RO_OPTIONS: Final = OptionTable(COMMON_OPTIONS)
RADIUS_AT: Final = 6  # where the options of GEORADIUS begin
MEMBER_AT: Final = 5  # those of GEORADIUSBYMEMBER
SEARCHED: Final = "RO access"
STORED: Final = "OW update"


class Order(Enum):
    """The order of what is answered."""

    AS_FOUND = 0
    NEAREST_FIRST = 1
    FARTHEST_FIRST = 2


class Search:
    """One search. metres: in the unit of distances. limit: of places answered. stops_early: COUNT with ANY."""

    __slots__ = (
        "area", "limit", "metres", "order", "origin", "shape", "stops_early",
        "stores_distances", "target", "with_distance", "with_place", "with_score",
    )  # fmt: skip

    def __init__(self) -> None:
        self.area = Area()
        self.origin = b""  # FROMMEMBER or FROMLONLAT, once given
        self.shape = b""  # BYRADIUS or BYBOX
        self.metres = 1.0
        self.order = Order.AS_FOUND
        self.limit = NO_LIMIT
        self.stops_early = False
        self.target: bytes | None = None  # the key at which the places are to be stored
        self.stores_distances = False
        self.with_distance = self.with_score = self.with_place = False

    def start_at(self, longitude: float, latitude: float) -> None:
        self.area.longitude, self.area.latitude = longitude, latitude

    def start_at_member(self, zset: SortedSet | None, member: bytes) -> None:
        """Around a member; where there is no set, nothing will be found."""
        if zset is None:
            return
        score = zset.score(member)
        if score is None:
            raise ReplyError(b"ERR could not decode requested zset member")
        longitude, latitude = geohash.decoded(score)
        self.start_at(longitude, latitude)

    def take_radius(self, radius: bytes, unit: bytes) -> None:
        metres = float_word(radius, b"ERR need numeric radius")
        if metres < 0:
            raise ReplyError(b"ERR radius cannot be negative")
        self.metres = metres_in(unit)
        self.area.make_circle(metres * self.metres)

    def take_box(self, width: bytes, height: bytes, unit: bytes) -> None:
        across = float_word(width, b"ERR need numeric width")
        up = float_word(height, b"ERR need numeric height")
        if across < 0 or up < 0:
            raise ReplyError(b"ERR height or width cannot be negative")
        self.metres = metres_in(unit)
        self.area.make_box(across * self.metres, up * self.metres)

    def take_common(self, option: bytes, args: list[bytes], at: int) -> bool:
        """Read an option that all searches know; False if it is none of them."""
        if option == b"WITHDIST":
            self.with_distance = True
        elif option == b"WITHHASH":
            self.with_score = True
        elif option == b"WITHCOORD":
            self.with_place = True
        elif option == b"ANY":
            self.stops_early = True
        elif option == b"ASC":
            self.order = Order.NEAREST_FIRST
        elif option == b"DESC":
            self.order = Order.FARTHEST_FIRST
        elif option == b"COUNT":
            self.limit = arguments.integer(args[at + 1])
            if self.limit <= 0:
                raise ReplyError(b"ERR COUNT must be > 0")
        else:
            return False
        return True

    def check(self, storing: bytes) -> None:
        """Refuse what cannot go together; `storing` names the command that stores."""
        if self.target is not None and (self.with_distance or self.with_score or self.with_place):
            text = b"ERR %b is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            raise ReplyError(text % storing)

    def check_end(self) -> None:
        if self.stops_early and not self.limit:
            raise ReplyError(b"ERR the ANY argument requires COUNT argument")
        if self.limit and not self.stops_early and self.order is Order.AS_FOUND:
            self.order = Order.NEAREST_FIRST


def read_geosearch(args: list[bytes], zset: SortedSet | None, first: int, target: bytes | None) -> Search:
    """Read the search of GEOSEARCH or GEOSEARCHSTORE; options begin at `first`. The last of equal options counts."""
    search = Search()
    search.target = target
    at = first
    while at < len(args):
        option = args[at].upper()
        words = SEARCH_OPTIONS.words(option, args, at)
        if not words:
            raise refusals.syntax()
        if search.take_common(option, args, at):
            pass
        elif option == b"FROMMEMBER" and search.origin in (b"", option):
            search.origin = option
            search.start_at_member(zset, args[at + 1])
        elif option == b"FROMLONLAT" and search.origin in (b"", option):
            search.origin = option
            longitude, latitude = read_place(args[at + 1], args[at + 2])
            search.start_at(longitude, latitude)
        elif option == b"BYRADIUS" and search.shape in (b"", option):
            search.shape = option
            search.take_radius(args[at + 1], args[at + 2])
        elif option == b"BYBOX" and search.shape in (b"", option):
            search.shape = option
            search.take_box(args[at + 1], args[at + 2], args[at + 3])
        elif option == b"STOREDIST" and target is not None:
            search.stores_distances = True
        else:
            raise refusals.syntax()
        at += words
    search.check(b"GEOSEARCHSTORE")
    if not search.origin:
        text = b"ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for %b"
        raise ReplyError(text % refusals.c_string(args[0]))
    if not search.shape:
        text = b"ERR exactly one of BYRADIUS and BYBOX can be specified for %b"
        raise ReplyError(text % refusals.c_string(args[0]))
    search.check_end()
    return search


def read_georadius(args: list[bytes], zset: SortedSet | None, by_member: bool, may_store: bool) -> Search:
    """Read the search of GEORADIUS and its relatives. Without a key, BYMEMBER's radius is not checked (Redis 8.6.3)."""
    search = Search()
    if by_member:
        search.start_at_member(zset, args[2])
    else:
        longitude, latitude = read_place(args[2], args[3])
        search.start_at(longitude, latitude)
    at = MEMBER_AT if by_member else RADIUS_AT
    if not by_member or zset is not None:
        search.take_radius(args[at - 2], args[at - 1])
    known = RADIUS_OPTIONS if may_store else RADIUS_RO_OPTIONS
    while at < len(args):
        option = args[at].upper()
        words = known.words(option, args, at)
        if not words:
            raise refusals.syntax()
        if not search.take_common(option, args, at):
            search.target = args[at + 1]
            search.stores_distances = option == b"STOREDIST"
        at += words
    search.check(b"STORE option in GEORADIUS")
    search.check_end()
    return search


def find_keys_around_place(args: list[bytes]) -> list[KeyPlace]:
    """The keys of GEORADIUS."""
    return _find_keys(args, RADIUS_AT)


def find_keys_around_member(args: list[bytes]) -> list[KeyPlace]:
    """The keys of GEORADIUSBYMEMBER."""
    return _find_keys(args, MEMBER_AT)


def _find_keys(args: list[bytes], at: int) -> list[KeyPlace]:
    """The source, and the last target of each of TARGETS. The last of both is used; Redis 8.6.3 names both, too."""
    found = [KeyPlace(1, SEARCHED.split())]
    for option in TARGETS:
        found += [KeyPlace(place + 1, STORED.split()) for place in RADIUS_OPTIONS.places_of(option, args, at)[-1:]]
    return found
