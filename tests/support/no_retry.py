"""A client of redis-py that asks once: by default it would sleep for seconds between attempts."""

from typing import Final

from redis.backoff import NoBackoff
from redis.retry import Retry

NO_RETRY: Final = Retry(NoBackoff(), 0)
