"""Random requests over all types, and what a real Redis tells of them: keyspace events and lines of its log."""

import random
import shlex

from tests.against_redis.makers.shared import Maker
from tests.against_redis.typed import MAKERS, Mixture
from tests.support.effects_beside_redis import RedisSide, Step, steps_of_engine
from tests.support.first_difference import lines
from tests.support.random_words import Request
from tests.support.reference_knowledge import Known
from tests.support.same_result import listed, text_of
from tests.support.shrinking import shortest

LEFT_OUT = {
    "HELLO": "replies are compared elsewhere, in both protocols",
    "FAIL": "BITFIELD: Redis does not log a string that it only made longer",
}
OWN_LINES = "FIELDS"  # requests about fields of hashes: their lines say the same in another order, or fewer of them


def line_of(request: Request) -> str:
    return shlex.join([word.encode("unicode_escape").decode() for word in request])


def events_and_log(steps: list[Step]) -> list[tuple[list[str], list[str]]]:
    """Events and log lines alone, these in capitals: replies may come in any order, and options in any spelling."""
    return [
        (events_of(step), [line.upper() for line in step.logged if OWN_LINES not in step.request.upper()])
        for step in steps
    ]


def events_of(step: Step) -> list[str]:
    """Of a SORT in one order: Redis looks its keys up in the order of a hash table."""
    return sorted(step.events) if step.request.upper().startswith("SORT") else step.events


def requests_of(seed: str, known: Known, count: int, makers: tuple[type[Maker], ...] = MAKERS) -> list[Request]:
    """Requests of which nothing is left to chance."""
    mixture = Mixture(random.Random(seed), known, makers)
    return [
        request
        for request in mixture.requests(count)
        if mixture.shapes.maker_by_chance(request) is None and LEFT_OUT.keys().isdisjoint(map(str.upper, request))
    ]


def first_difference(redis: RedisSide, requests: list[Request]) -> str:
    """The first request of which the two tell otherwise, with what they tell; empty: there is none."""
    dialogue = [line_of(request) for request in requests]
    theirs, ours = redis.play(dialogue), steps_of_engine(dialogue)
    for request, one, other in zip(requests, events_and_log(theirs), events_and_log(ours), strict=True):
        if one != other:
            return "\n".join([f"  of {text_of(request)}", *lines(one, other)])
    return ""


def compare_events_and_log(
    redis: RedisSide, known: Known, seed: str, count: int, makers: tuple[type[Maker], ...] = MAKERS
) -> str:
    """The shortest dialogue found of which the two tell otherwise; empty: there is none."""
    requests = requests_of(seed, known, count, makers)
    if not first_difference(redis, requests):
        return ""
    mixture = Mixture(random.Random(0), known, makers)
    fewer = shortest(requests, lambda some: not mixture.shapes.may_wait(some) and bool(first_difference(redis, some)))
    return "\n".join([f"seed {seed}", *listed(map(text_of, fewer), len(fewer)), first_difference(redis, fewer)])
