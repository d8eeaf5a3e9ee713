"""An administrator that has the server load its data again, and a client that is closed as it takes no replies."""

import asyncio
import random
from typing import Final

from tests.world.actors import STREAM, Actor

RELOADS: Final = ((b"DEBUG", b"RELOAD"), (b"DEBUG", b"LOADAOF"))
REVERTS: Final = (
    (b"SAVE",),
    (b"DEBUG", b"RELOAD", b"NOSAVE"),
    (b"DEBUG", b"RELOAD", b"NOSAVE", b"MERGE", b"NOFLUSH"),
    (b"DEBUG", b"RELOAD", b"NOSAVE", b"NOFLUSH"),
    (b"DEBUG", b"RELOAD", b"MERGE", b"NOFLUSH"),
)
PAGES: Final = (1, 10, 60)


class Reloader(Actor):
    """What was confirmed is there after each reload, and clients stay."""

    words: tuple[tuple[bytes, ...], ...] = RELOADS

    async def step(self) -> None:
        await asyncio.sleep(self.chance.random() * 2)
        words = self.chance.choice(self.words)
        reply = await self.client.ask(*words)
        self.world.story.tell(self.name, f"{b' '.join(words).decode()}: {reply!r}")


class Reverter(Reloader):
    """What was saved comes back, in place of what is there or beside it: then that is what the log has, too."""

    words = REVERTS


class Glutton(Actor):
    """Asks for all of a stream, again and again, and takes no reply for a while: the server may close the link."""

    async def step(self) -> None:
        connected = self.client.connected
        assert connected is not None, "it is open"
        connected.replies.is_stopped = True
        try:
            replies = self.client.send(*[(b"XRANGE", STREAM, b"-", b"+")] * self.chance.choice(PAGES))
            await asyncio.sleep(self.chance.random() * 3)
        finally:
            connected.replies.read_on()
        for reply in replies:
            await reply


def closing(chance: random.Random) -> dict[str, str]:
    return {
        "enable_debug_command": "yes",
        "aof_timestamp_enabled": chance.choice(("no", "yes")),
        "maxmemory_clients": chance.choice(("0", "150kb")),
        "timeout": chance.choice(("0", "2")),
        "client_output_buffer_limit": chance.choice(("normal 0 0 0", "normal 200000 0 0", "normal 0 120000 1")),
    }
