"""Places, beside a real Redis and alone."""

import pytest

from tests.support.dialogue import Dialogue
from tests.support.effects_beside_redis import RedisSide, assert_as_redis

SICILY = "GEOADD s 13.361389 38.115556 Palermo 15.087269 37.502669 Catania"
EDGES = "GEOADD s 12.758489 38.788135 edge1 17.241510 38.788135 edge2"
CORNERS = "GEOADD c -180 -85.05112878 sw 180 85.05112878 ne -180 85.05112878 nw 180 -85.05112878 se 0 0 o"
DIALOGUES = {
    "added": [
        SICILY, SICILY, EDGES, "ZSCORE s Palermo", "ZRANGE s 0 -1 WITHSCORES", "GEOADD s NX 1 1 Palermo 1 1 new",
        "GEOADD s XX CH 1 1 Palermo 1 1 other", "GEOADD s ch 2 2 Palermo 3 3 third", "GEOADD s NX XX 1 1 a",
        "GEOADD s 1 1", "GEOADD s CH 1 1", "GEOADD s 1 1 a 2", "GEOADD s 181 1 a", "GEOADD s 1 86 a",
        "GEOADD s 1 1 a x 1 b", "GEOADD s 1 nan a", "GEOADD s inf 1 a", "GEOADD s FOO 1 1 a", "GEOADD s CH CH 1 1 a",
        "SET t x", "GEOADD t 1 1 a", "GEOADD t 181 1 a", "GEOADD missing XX 1 1 a", "TYPE s", "GEOADD s 1e-400 1 a",
    ],
    "measured": [
        SICILY, CORNERS, "GEODIST s Palermo Catania", "GEODIST s Palermo Catania KM", "GEODIST s Palermo Catania mi",
        "GEODIST s Palermo Catania ft", "GEODIST s Palermo Palermo", "GEODIST s Palermo nowhere", "GEODIST m a b",
        "GEODIST m a b parsec", "GEODIST s Palermo Catania m x", "GEODIST c sw ne", "GEOPOS s Palermo Catania x",
        "GEOPOS s", "GEOPOS m a", "GEOHASH s Palermo Catania x", "GEOHASH m a", "GEOPOS c sw ne nw se o",
        "GEOHASH c sw ne nw se o", "ZRANGE c 0 -1 WITHSCORES", "SET t x", "GEODIST t a b", "GEOPOS t a", "GEOHASH t a",
        "GEODIST t a b parsec",
    ],
    "scores that no place has": [
        "ZADD z 1.5 a -1 b inf c -inf d 1e300 e -1e300 f 1e19 g -1e19 h 9007199254740993 i",
        "GEOPOS z a b c d e f g h i",
        "GEOHASH z a b c d e f g h i", "GEODIST z a b", "GEORADIUS z 0 0 30000 km WITHHASH",
    ],
    "searched": [
        SICILY, EDGES, "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 500 km",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 200 km ASC",
        "GEOSEARCH s FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST WITHHASH",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 500 km COUNT 2 ANY",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 500 km COUNT 2",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 500 km COUNT 2 DESC", "GEOSEARCH s FROMMEMBER Palermo BYRADIUS 0 m",
        "GEOSEARCH s FROMMEMBER x BYRADIUS 1 m", "GEOSEARCH m FROMMEMBER x BYRADIUS 1 m",
        "GEOSEARCH m FROMMEMBER x BYRADIUS 1 parsec", "GEORADIUS s 15 37 500 km WITHDIST WITHCOORD",
        "GEORADIUSBYMEMBER s Palermo 200 km", "GEORADIUSBYMEMBER m x 200 km", "GEORADIUSBYMEMBER s x 200 km",
        "GEORADIUS_RO s 15 37 500 km", "GEORADIUSBYMEMBER_RO s Palermo 1 m", "GEORADIUS_RO s 15 37 500 km STORE d",
        "GEORADIUSBYMEMBER_RO s Palermo 1 m STOREDIST d",
    ],
    "refused": [
        SICILY, "GEOSEARCH s FROMLONLAT 15 37 FROMMEMBER Palermo", "GEOSEARCH s FROMLONLAT 15 37 ASC ASC",
        "GEOSEARCH s BYRADIUS 1 m ASC ASC", "geosearch s BYRADIUS 1 m ASC ASC", "GEOSEARCH s ASC ASC ASC ASC ASC",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 m BYBOX 1 1 m", "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS -1 m",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS x m", "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS x parsec",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS -1 parsec", "GEOSEARCH s FROMLONLAT 15 37 BYBOX x y km",
        "GEOSEARCH s FROMLONLAT 15 37 BYBOX 1 y km", "GEOSEARCH s FROMLONLAT 15 37 BYBOX -1 y km",
        "GEOSEARCH s FROMLONLAT 15 37 BYBOX 1 -1 km", "GEOSEARCH s FROMLONLAT 15 37 BYBOX -1 -1 parsec",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km COUNT 0", "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km COUNT x",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km COUNT", "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km ANY",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km ANY FOO", "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km STOREDIST",
        "GEOSEARCH s FROMLONLAT 15 37 BYRADIUS 1 km STORE d", "GEOSEARCH s FROMLONLAT 15 BYRADIUS 1 km",
        "GEOSEARCH s FROMLONLAT 181 37 BYRADIUS 1 km", "GEOSEARCHSTORE d s FROMLONLAT 15 37 BYRADIUS 1 km WITHDIST",
        "GEOSEARCHSTORE d s FROMLONLAT 15 37 WITHDIST WITHHASH", "GEORADIUS s 15 37 1 km WITHDIST STORE d",
        "GEORADIUSBYMEMBER s Palermo 1 km WITHDIST STORE d", "GEORADIUS s 15 37 1 km STORE",
        "GEORADIUS s 15 37 1 parsec STORE", "GEORADIUS s 15 x 1 km", "GEORADIUS s 15 37 -1 km", "SET t x",
        "GEOSEARCH t FOO BAR BAZ FOO BAR", "GEORADIUS t x y z km", "GEORADIUS s 15 37 1 km ANY",
        "GEORADIUS s 15 37 1 km COUNT -1",
        "GEOSEARCH s FROMMEMBER x BYRADIUS 1 parsec", "GEOSEARCH s BYRADIUS 1 parsec FROMMEMBER x",
    ],
    "stored": [
        SICILY, EDGES, "GEOSEARCHSTORE d s FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3",
        "ZRANGE d 0 -1 WITHSCORES", "GEOSEARCHSTORE d s FROMLONLAT 15 37 BYBOX 400 400 km ASC COUNT 3 STOREDIST",
        "ZRANGE d 0 -1 WITHSCORES", "GEOSEARCHSTORE d s FROMLONLAT 0 0 BYRADIUS 1 m", "EXISTS d",
        "GEOSEARCHSTORE d s FROMLONLAT 0 0 BYRADIUS 1 m", "GEOSEARCHSTORE d m FROMLONLAT 0 0 BYRADIUS 1 m",
        "GEORADIUS s 15 37 200 km STORE d", "GEORADIUS s 15 37 200 km STORE a STOREDIST b", "EXISTS a", "EXISTS b",
        "GEORADIUS s 15 37 200 mi STOREDIST b STORE c", "ZRANGE c 0 -1 WITHSCORES", "SET t x",
        "GEORADIUSBYMEMBER s Palermo 300 km STOREDIST t COUNT 2", "ZRANGE t 0 -1 WITHSCORES",
        "GEORADIUS m 15 37 1 km STORE d",
        "EXISTS d", "GEOSEARCHSTORE s s FROMLONLAT 15 37 BYRADIUS 200 km", "ZCARD s", "EXPIRE s 1000",
        "GEOSEARCHSTORE s s FROMLONLAT 15 37 BYRADIUS 200 km", "TTL s",
        "COMMAND GETKEYS GEORADIUS k 1 1 1 m STORE a", "COMMAND GETKEYS GEORADIUS k 1 1 1 m STORE a STOREDIST b",
        "COMMAND GETKEYS GEORADIUSBYMEMBER k m 1 m COUNT 1 STOREDIST b", "COMMAND GETKEYS GEORADIUS k 1 1 1 m",
        "COMMAND GETKEYSANDFLAGS GEORADIUS k 1 1 1 m STORE a",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_places_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


def test_a_distance_is_rounded_as_redis_rounds_it(dialogue: Dialogue) -> None:
    dialogue("GEOADD z -11.030057338341123 14.294994 a 14.811939 -74.74634089709653 b")

    assert dialogue("GEODIST z a b ft") == b"33025646.7010"  # 33025646.701050002
