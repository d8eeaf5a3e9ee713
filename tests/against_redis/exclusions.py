"""Everything that is not compared, by name, and why. What is not named here is compared to the last byte."""

from typing import Final

# Fields of XINFO and HELLO that are taken out of both replies, names in lower case.
FIELDS: Final = {
    b"nacked-count": "new in Redis 8.8; the reference may be older",
    b"radix-tree-nodes": "the size of a tree inside Redis, which no other server has",
    b"version": "HELLO: whose version it is",
    b"id": "HELLO: the connection's number, which depends on the connections before",
    b"modules": "HELLO: what the reference was built with",
}

# What an older reference is known to do otherwise, and since when it does as today.
ERROR_TEXTS_SINCE: Final = (8, 2, 0)  # before, only the code of an error (its first word) is compared
CONSUMERS_SINCE: Final = (7, 2, 0)  # before, a read that found nothing made no consumer: no requests about consumers
XSETID_SINCE: Final = (7, 2, 0)  # before, an emptied stream took an id below its last deleted one: it is not sent
IDMP_SINCE: Final = (8, 6, 0)  # before, there are no directives of it

# Fields that an older reference does not have, by the version that brought them.
FIELDS_SINCE: Final = {
    b"consumers": CONSUMERS_SINCE,
    b"inactive": (7, 2, 0),
    b"active-time": (7, 2, 0),
    b"idle": (7, 2, 0),  # counted from the last success until then
    b"seen-time": (7, 2, 0),
    b"lag": (7, 4, 2),  # counted by other rules until then
    b"entries-read": (7, 4, 2),
    b"idmp-duration": (8, 6, 0),
    b"idmp-maxsize": (8, 6, 0),
    b"pids-tracked": (8, 6, 0),
    b"iids-tracked": (8, 6, 0),
    b"iids-added": (8, 6, 0),
    b"iids-duplicates": (8, 6, 0),
}

# Requests and words that are never sent.
REQUESTS: Final = {
    "XNACK": "new in Redis 8.8: golden dialogues show it",
    "XTRIM, XADD with DELREF in a scenario that deletes entries otherwise": "references of those stay in Redis",
    "MAXCOUNT, MAXSIZE": "new in Redis 8.10: golden dialogues show them",
    "XIDMPRECORD of an entry whose id is no time in the future": "a job forgets the record within a second",
    "IDMP-DURATION below 100": "the same job forgets iids while the scenario lasts",
    "XADD IDMP in a scenario that exhausts ids": "the same job forgets a producer that has nothing",
    "PEXPIREAT near the present": "whether the key is still there would depend on the moment",
    "BLOCK, outside MULTI": "the blocking comparison sends it",
    "RANDOMKEY": "chance decides",
    "XCLAIM TIME within a day of the present": "minutes would be told apart at random",
    "XREADGROUP CLAIM 0 that waits": "Redis tries it again ten times a second, and its consumer is seen each time",
}

# Values that are rounded in both replies, never dropped.
VALUES: Final = {
    "idle, inactive, XPENDING's and CLAIM's idle times": "by the minute, for the clock runs on",
    "seen-time, active-time, delivery times": "by the minute of their age; where clients wait, by the event",
    "TTL, PTTL": "by the ten seconds of the moment that they mean",
    "delivery counts": "they saturate at 2^63 - 1 since Redis 8.8 and turn negative before",
    "KEYS, SCAN": "sorted, for the order of its keys is a hash's, with a seed of its own",
    "HELP": "by its reply's types: the sentences are our own",
    "ids that `*` made": "over TCP only: they are all alike, for two servers read the clock twice",
}
