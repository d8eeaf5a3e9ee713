"""Why a request may not simply be run: one bit for each reason, of a session or of the whole engine.

A bit is never set by itself: it follows an attribute, in the attribute's setter (session.py, engine.py). While the bits
of the session and of the engine are all 0, a request is run; else the gate (gate.py) decides, in Redis's order.
"""

from typing import Final

# of a session
NOT_AUTHENTICATED: Final = 1
IN_MULTI: Final = 2
SUBSCRIBED: Final = 4
MONITORS: Final = 8  # shows itself what others ask
REPLIES_WITHHELD: Final = 16  # CLIENT REPLY OFF or SKIP
CACHING_CHOSEN: Final = 32  # CLIENT CACHING: holds for the next request
RESTRICTED: Final = 64  # its user may not do everything
REPLICA: Final = 128  # a replica of this server

# of the engine
LOADING: Final = 256
BUSY: Final = 512  # with a script that takes long
PAUSED: Final = 1024  # CLIENT PAUSE
MEMORY_LIMITED: Final = 2048  # maxmemory is set
LOG_FAILING: Final = 4096
MONITORED: Final = 8192  # some session monitors
NOTIFYING: Final = 16384  # keyspace events are published
TRACKED: Final = 32768  # some session tracks keys (CLIENT TRACKING)
NEEDS_REPLICAS: Final = 65536  # min-replicas-to-write is set
FOLLOWING: Final = 131072  # this server is a replica
CLUSTERED: Final = 262144  # keys are in slots (cluster-enabled)
MEASURED: Final = 524288  # what keys take is collected (HOTKEYS)
WEIGHED: Final = 2097152  # large requests and replies are noted (COMMANDLOG)
ASKED: Final = 1048576  # of a session: the next request follows an ASK of another node (ASKING)

SEEN: Final = MONITORED | NOTIFYING | TRACKED | MEASURED  # each request is seen by others: it is run by itself
"""The bits under which EXEC and scripts, which have passed the gate, run requests one by one."""
NOTED: Final = MONITORED | TRACKED | MEASURED | WEIGHED  # after each request something is done for others
AT_END_OF_REQUEST: Final = REPLIES_WITHHELD | CACHING_CHOSEN | ASKED  # something is done for the session itself
