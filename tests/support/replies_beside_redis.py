"""A dialogue held with a real Redis and with an engine, compared byte by byte.

What must differ (versions, ids, modules, the time) is made equal first.
"""

import re
import socket
import time

from penstock.engine.engine import Engine
from tests.support.dialogue import Dialogue
from tests.support.engines import make_engine, settings_with
from tests.support.shell_words import split
from tests.support.wire import pack

PATIENCE_S = 2.0
OTHERWISE = (
    (re.compile(rb"\*1\r\n(?:%4|\*8)\r\n\$4\r\nname\r\n\$9\r\nvectorset.*?args\r\n\*0\r\n", re.DOTALL), b"*0\r\n"),
    (re.compile(rb"(version\r\n)\$\d\r\n\d+\.\d+\.\d+"), rb"\1X"),
    (re.compile(rb"(\$2\r\nid\r\n):\d+"), rb"\1:N"),
)


def engine_for_debugging() -> Engine:
    """An engine with DEBUG and without a log, as the reference is started."""
    settings = settings_with(enable_debug_command="yes", appendonly="no")
    return make_engine(settings=settings)


def made_equal(reply: bytes) -> bytes:
    for pattern, shown in OTHERWISE:
        reply = pattern.sub(shown, reply)
    return reply


def replies_of_both(
    port: int, lines: list[str], resp: int, engine: Engine | None = None
) -> tuple[list[bytes], list[bytes]]:
    """Redis's and Penstock's replies to each line, in a dialogue of their own."""
    ours = Dialogue(engine or engine_for_debugging())
    theirs: list[bytes] = []
    here: list[bytes] = []
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        for line in [f"HELLO {resp}", "FLUSHALL", *lines]:  # other tests left keys in Redis
            words = [word.encode() for word in split(line)]
            answer = made_equal(ours.words(*words))
            connection.sendall(pack(*words))
            here.append(answer)
            theirs.append(_read(connection, len(answer)))
    return theirs[2:], here[2:]


def _read(connection: socket.socket, length: int) -> bytes:
    """As many bytes as we have ourselves, and what comes with them; a moment longer where nothing should come."""
    got = b""
    deadline = time.monotonic() + (PATIENCE_S if length else 0.03)
    while len(made_equal(got)) < max(length, 1):
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            chunk = connection.recv(1 << 20)
        except TimeoutError:
            break
        if not chunk:
            break
        got += chunk
    return made_equal(got)
