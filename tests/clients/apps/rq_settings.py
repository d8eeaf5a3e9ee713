"""What `rq worker --config rq_settings` is told behind Sentinels."""

import os

from job import MASTER, sentinels

SENTINEL = {"INSTANCES": sentinels(), "MASTER_NAME": MASTER, "PASSWORD": os.environ["PASSWORD"], "SOCKET_TIMEOUT": 20}
