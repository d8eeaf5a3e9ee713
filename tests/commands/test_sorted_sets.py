"""Sorted sets and SORT: what is answered, told and logged, beside what Redis does."""

import random
import shlex

import pytest

from tests.against_redis.makers.sortedsets import SortedSets
from tests.against_redis.typed import Mixture
from tests.support.effects_beside_redis import RedisSide, assert_as_redis
from tests.support.reference_knowledge import Known

ALIKE = {
    "scores": [
        "SET str x", "RPUSH l a", "ZADD z 1 a 2 b", "ZADD z 1 a", "ZADD z XX 5 c", "ZADD nk XX 5 c",
        "ZADD z CH 3 a 4 c", "ZADD z NX 9 a 9 d", "ZADD z GT 1 a", "ZADD z GT CH 10 a 10 e", "ZADD z LT CH 0 a 11 f",
        "ZADD z INCR 5 a", "ZADD z NX INCR 5 a", "ZADD z XX INCR 5 nope", "ZADD z GT INCR -5 a", "ZADD z NX XX 1 a",
        "ZADD z GT LT 1 a", "ZADD z GT NX 1 a", "ZADD z INCR 1 a 2 b", "ZADD z CH", "ZADD z CH 1",
        "ZADD z NX XX GT 1 a", "ZADD z 1 a 2", "ZADD z x a", "ZADD str x a", "ZADD str 1 a", "ZADD z 1 a x b",
        "ZADD z inf i", "ZADD z INCR -inf i", "ZADD z 3 dup 4 dup", "ZADD z CH 3 dup 4 dup", "ZADD nk2 XX CH 1 a",
        "ZADD nk2 NX INCR 1 a", "ZADD nk3 GT INCR 1 a", "ZADD nk4 LT 1 a", "ZADD z nx incr 1", "ZADD z ch ch 1 q",
        "ZINCRBY z 1.5 a", "ZINCRBY z nan a", "ZINCRBY z inf a", "ZINCRBY z -inf a", "ZINCRBY str 1 a",
        "ZINCRBY str x a", "ZINCRBY nn 1 a", "ZINCRBY z 0 b", "ZREM z a nope", "ZREM z nope", "ZREM nope a",
        "ZREM str a", "ZREM nn a", "ZREM nk4 a a b", "ZCARD z", "ZCARD nope", "ZCARD str", "ZSCORE z b",
        "ZSCORE z nope", "ZSCORE nope b", "ZMSCORE z b nope", "ZMSCORE nope a b", "ZMSCORE str a", "ZRANK z b",
        "ZRANK z nope", "ZRANK nope b", "ZRANK z b WITHSCORE", "ZRANK z nope WITHSCORE", "ZRANK nope b WITHSCORE",
        "ZRANK z b WITHSCORES", "ZRANK z b WITHSCORE x", "ZRANK str b foo", "ZREVRANK z b WITHSCORE",
        "ZCOUNT z -inf +inf", "ZCOUNT nope 1 2", "ZCOUNT nope x 2", "ZCOUNT str x 2", "ZLEXCOUNT z - +",
        "ZLEXCOUNT nope a +", "ZLEXCOUNT str a +", "ZLEXCOUNT z a b",
    ],
    "ranges": [
        "SET str x", "RPUSH l a", "ZADD z 1 a 2 b 3 c 4 d 5 e", "SADD s a b x", "ZADD lex 0 a 0 b 0 c 0 d",
        "ZRANGE z 0 -1", "ZRANGE z 1 2 REV WITHSCORES", "ZRANGE z a 2", "ZRANGE nope a 2", "ZRANGE z (1 3 BYSCORE",
        "ZRANGE z (1 x BYSCORE", "ZRANGE z 3 1 BYSCORE REV LIMIT 0 1", "ZRANGE z 3 1 BYSCORE REV LIMIT -1 1",
        "ZRANGE z 0 9 BYSCORE LIMIT 1 -5", "ZRANGE z 0 1 LIMIT 0 1", "ZRANGE z 0 1 LIMIT 0 -1",
        "ZRANGE z 0 1 LIMIT 2 -1", "ZRANGE z 0 1 LIMIT 0 x", "ZRANGE z 0 1 LIMIT 0", "ZRANGE z - + BYLEX WITHSCORES",
        "ZRANGE z - + BYLEX BYSCORE", "ZRANGE z 1 2 BYSCORE BYLEX", "ZRANGE z 1 2 REV REV", "ZRANGE z 1 2 FOO",
        "ZRANGE str 1 2 FOO", "ZRANGE str 1 2", "ZRANGE lex [b (d BYLEX", "ZRANGE lex (d [b BYLEX REV",
        "ZRANGE lex b d BYLEX", "ZRANGE lex + - BYLEX", "ZRANGE lex + - BYLEX REV LIMIT 1 2",
        "ZRANGE z 1 2 WITHSCORES WITHSCORES", "ZRANGEBYSCORE z 1 2 BYSCORE",
        "ZRANGEBYSCORE z 1 2 LIMIT 0 1 WITHSCORES", "ZRANGEBYSCORE z 1 2 REV", "ZRANGEBYSCORE z x 2 LIMIT a b",
        "ZRANGEBYSCORE str 1 2", "ZREVRANGEBYSCORE z 5 2 LIMIT 1 1", "ZRANGEBYLEX lex - + WITHSCORES",
        "ZRANGEBYLEX lex - + LIMIT 1 1", "ZREVRANGEBYLEX lex + - LIMIT 1 1", "ZREVRANGE z 0 1 WITHSCORES",
        "ZREVRANGE z 0 1 REV", "ZREVRANGE z 0 1 LIMIT 0 -1", "ZREVRANGE z 0 1 WITHSCORES x", "ZRANGESTORE d z 0 -1",
        "ZRANGESTORE d z 0 -1 WITHSCORES", "ZRANGESTORE d nope 0 -1", "ZRANGESTORE d nope 0 -1",
        "ZRANGESTORE d z (1 3 BYSCORE LIMIT 0 1", "ZRANGESTORE l z 0 1", "ZRANGESTORE d str 0 1",
        "ZRANGESTORE d z 1 9 BYSCORE REV", "ZRANGESTORE z z 0 1 REV", "ZREMRANGEBYRANK d 0 0",
        "ZREMRANGEBYRANK nope 0 0", "ZREMRANGEBYRANK str a 0", "ZREMRANGEBYRANK str 0 0", "ZREMRANGEBYRANK nope a 0",
        "ZREMRANGEBYSCORE z -inf +inf", "ZREMRANGEBYSCORE z -inf x", "ZREMRANGEBYLEX lex [a (b",
        "ZREMRANGEBYLEX lex a (b", "ZREMRANGEBYLEX lex + -", "ZREMRANGEBYRANK lex 0 -1",
    ],
    "pops and combinations": [
        "SET str x", "RPUSH l a", "ZADD z 1 a 2 b 3 c 4 d 5 e", "SADD s a b x", "ZADD y 1 a 2 b 3 c 4 d 5 e",
        "ZPOPMIN z", "ZPOPMIN z 2", "ZPOPMIN z 0", "ZPOPMIN z -1", "ZPOPMIN z x", "ZPOPMIN nope x", "ZPOPMIN nope",
        "ZPOPMIN str 0", "ZPOPMIN str", "ZPOPMAX z 10", "ZPOPMAX z 1 2", "ZADD z 1 a 2 b", "ZMPOP 2 nope z MIN",
        "ZMPOP 2 nope z MAX COUNT 5", "ZMPOP 2 nope z MAX COUNT 5", "ZMPOP 0 z MAX", "ZMPOP x z MAX",
        "ZMPOP -1 z MAX", "ZMPOP 5 z MAX", "ZMPOP 1 z FOO", "ZMPOP 1 z", "ZMPOP 1 z MIN COUNT 0",
        "ZMPOP 1 z MIN COUNT", "ZMPOP 1 z MIN COUNT 1 COUNT 2", "ZMPOP 1 z MIN FOO 1", "ZMPOP 1 str MIN",
        "ZMPOP 2 nope str MIN", "ZMPOP 2 y str MIN", "ZMPOP 2 str y MIN", "ZMPOP 9223372036854775807 y MIN",
        "BZPOPMIN nope y 0", "BZPOPMAX nope y str 0", "BZPOPMAX nope str y 0", "BZPOPMAX str y x",
        "BZMPOP 0 1 y MIN COUNT 1", "BZMPOP -1 1 y MIN COUNT 1", "BZMPOP x 0 y MIN COUNT 1",
        "BZMPOP 0 0 y MIN COUNT 1", "BZMPOP 0 1 y MIN COUNT x", "BZMPOP 0 1 y", "ZADD y 1 a 2 b", "ZUNION 2 y s",
        "ZUNION 2 y s WITHSCORES", "ZUNION 2 y nope", "ZUNION 2 y str", "ZUNION 2 str nope", "ZUNION 0 y",
        "ZUNION x y", "ZUNION 3 y s", "ZUNION 2 y s WEIGHTS 2", "ZUNION 2 y s WEIGHTS 2 x",
        "ZUNION 2 y s WEIGHTS 2 3 WITHSCORES", "ZUNION 2 y s AGGREGATE MIN WITHSCORES",
        "ZUNION 2 y s AGGREGATE AVG WITHSCORES", "ZUNION 2 y s AGGREGATE FOO", "ZUNION 2 y s AGGREGATE",
        "ZUNION 2 y s FOO", "ZUNION 2 y str FOO", "ZINTER 2 y s WITHSCORES", "ZINTER 2 nope s", "ZINTER 2 nope str",
        "ZINTER 1 y", "ZDIFF 2 y s", "ZDIFF 2 y s WITHSCORES", "ZDIFF 2 y s WEIGHTS 1 2", "ZDIFF 2 nope s",
        "ZDIFF 2 y y", "ZDIFF 2 y str", "ZDIFF 2 nope str", "ZINTERCARD 2 y s", "ZINTERCARD 2 y s LIMIT 1",
        "ZINTERCARD 2 y s LIMIT 0", "ZINTERCARD 2 y s LIMIT -1", "ZINTERCARD 2 y s LIMIT x", "ZINTERCARD 2 y s LIMIT",
        "ZINTERCARD 2 y s WITHSCORES", "ZINTERCARD 0 y s", "ZINTERCARD x y s", "ZINTERCARD 2 nope s",
        "ZINTERCARD 2 y str", "ZUNIONSTORE d 2 y s", "ZUNIONSTORE d 2 y s WITHSCORES", "ZUNIONSTORE d 2 nope nope",
        "ZUNIONSTORE d 2 nope nope", "ZUNIONSTORE d 0 nope nope", "ZINTERSTORE d 2 y s WEIGHTS 2 3",
        "ZINTERSTORE d 2 nope s", "ZDIFFSTORE d 2 y s", "ZDIFFSTORE d 1 y", "ZDIFFSTORE l 1 y",
        "ZUNIONSTORE y 1 y WEIGHTS inf", "ZUNIONSTORE d 2 y y WEIGHTS 1 -1", "ZUNION 2 y y WEIGHTS 1 -1 WITHSCORES",
        "ZADD zz 0 a -inf b", "ZUNION 1 zz WEIGHTS inf WITHSCORES", "ZUNION 1 zz WEIGHTS 0 WITHSCORES",
        "ZDIFFSTORE y 2 y d", "ZDIFFSTORE y 2 y str", "ZINTERSTORE y 2 y y AGGREGATE MAX",
    ],
    "sort": [
        "SET str x", "RPUSH l 3 1 2 10", "ZADD z 1 a 2 b 3 c 4 d 5 e", "SADD s a b x", "SADD is 3 1 2",
        "ZADD y 10 1 9 2 8 3", "MSET w_1 3 w_2 1 w_3 2 d_1 one d_2 two", "HSET h_1 f 9 g q", "HSET h_2 f 5",
        "ZRANDMEMBER nope", "ZRANDMEMBER nope 2", "ZRANDMEMBER z 0", "ZRANDMEMBER z x", "ZRANDMEMBER z 1 FOO",
        "ZRANDMEMBER nope 1 FOO", "ZRANDMEMBER str 1 FOO", "ZRANDMEMBER str", "ZRANDMEMBER z -9223372036854775808",
        "ZSCAN z 0", "ZSCAN z 0 COUNT 2", "ZSCAN z x", "ZSCAN nope x", "ZSCAN nope 0", "ZSCAN nope 0 COUNT 0",
        "ZSCAN nope 0 FOO", "ZSCAN str 0 FOO", "ZSCAN str 0", "ZSCAN z 0 MATCH a*", "ZSCAN z 0 COUNT 0",
        "ZSCAN z 0 COUNT x", "ZSCAN z 0 COUNT", "ZSCAN z 0 TYPE zset", "ZSCAN z 0 NOVALUES", "ZSCAN z 0 NOSCORES",
        "SORT l", "SORT l DESC", "SORT l ALPHA", "SORT l ALPHA DESC", "SORT l LIMIT 1 2", "SORT l LIMIT -1 2",
        "SORT l LIMIT 1 -2", "SORT l LIMIT 9 2", "SORT l LIMIT a b", "SORT l LIMIT 1", "SORT l BY w_*",
        "SORT is BY w_* GET d_* GET #", "SORT l BY nosort", "SORT l BY nosort DESC LIMIT 0 2", "SORT z BY nosort",
        "SORT z BY nosort DESC LIMIT 1 2", "SORT z BY nosort LIMIT 1 2", "SORT y", "SORT z", "SORT z ALPHA DESC",
        "SORT is BY h_*->f GET h_*->f GET h_*->g", "SORT is BY h_*->f GET h_*->", "SORT is STORE dst",
        "SORT nope STORE dst", "SORT nope STORE dst", "SORT nope", "SORT str", "SORT str FOO", "SORT h_1",
        "SORT l STORE str", "SORT l STORE l", "SORT_RO l STORE x", "SORT_RO l", "SORT s", "SORT l BY d_*",
        "SORT l BY d_* ALPHA", "SORT l ASC DESC ASC", "SORT l BY", "SORT l GET", "SORT l STORE",
        "SORT l LIMIT 0 1 LIMIT 2 1", "SORT is STORE d1 STORE d2",
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", ALIKE.values(), ids=ALIKE.keys())
def test_sorted_sets_answer_tell_and_log_as_redis_does(logging_redis: RedisSide, lines: list[str]) -> None:
    assert_as_redis(logging_redis, lines)


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_tell_and_log_as_redis_does(logging_redis: RedisSide, seed: int) -> None:
    lines = random_lines(seed, 300)

    assert_as_redis(logging_redis, lines)


def random_lines(seed: int, count: int) -> list[str]:
    """Requests about sorted sets that chance does not decide and that do not wait."""
    chance = random.Random(seed)
    mixture = Mixture(chance, Known((8, 6, 3)), (SortedSets,))
    requests = [request for request in mixture.requests(count) if request[0] not in ("ZRANDMEMBER", "ZSCAN", "OBJECT")]
    return [shlex.join(word.encode("unicode_escape").decode() for word in request) for request in requests]
