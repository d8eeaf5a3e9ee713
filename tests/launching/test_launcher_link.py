"""What a node tells its launcher: when it has all that its master has, and so may take that one's place."""

import asyncio
import socket
from collections.abc import Iterator
from typing import cast

import pytest

from penstock.clock import ManualClock
from penstock.engine.cluster.slot_rules import SlotRules
from penstock.engine.replication import master as links
from penstock.engine.replication.master import Master
from penstock.errors import UsageError
from penstock.launching.launcher import new_map
from penstock.protocol.reply import bulks
from penstock.server.launcher_link import MOST_UNSENT, LauncherLink
from penstock.server.replication.master_link import LinkLost, MasterLink, Wire
from penstock.server.server_log import ServerLog
from penstock.server.turns.turn import Turn
from tests.support.clock import NOW_MS
from tests.support.engines import make_engine, settings_with
from tests.support.fake_master import ID, PATIENCE_S, snapshot
from tests.support.fake_server import FakeLogWriter, FakeLoop, FakeTransport
from tests.support.memory_disk import MemoryDisk


class Replica(LauncherLink):
    """A replica of a cluster of two nodes, without a network."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.map = new_map(1, 1)
        for number, member in enumerate(self.map.members):
            member.ip, member.port, member.bus_port = "127.0.0.1", 7000 + number, 17000 + number
        self.member = self.map.members[1]
        self.launcher, its = socket.socketpair()
        clock = ManualClock(NOW_MS)
        settings = settings_with(cluster_enabled="yes", cluster_launcher=str(its.detach()), loglevel="nothing")
        self.engine = make_engine(clock, settings=settings)
        self.time = FakeLoop(clock)
        self.said = FakeTransport()
        super().__init__(self.engine, cast(SlotRules, self.engine.server.cluster), lambda: None, self.lines.append)
        self._loop = cast(asyncio.AbstractEventLoop, self.time)
        self._turn = Turn(self.engine, FakeLogWriter(), ServerLog(settings, clock), self._loop, lambda: None)
        self._transport = self.said
        self.launcher.sendall(self.map_message())
        self.read_first_map()
        self.say_ready()

    def close(self) -> None:
        self._socket.close()
        self.launcher.close()

    def map_message(self) -> bytes:
        return bulks([b"MAP", b"1", self.map.written(self.member.id).encode()])

    @property
    def master(self) -> Master:
        found = self.engine.replication.master
        assert found is not None
        return found

    def told(self) -> list[bytes]:
        """What it says of its copy within half a second: the IDs of the masters, empty where it has none."""
        self.said.written.clear()
        for _ in range(5):
            self.time.pass_ms(100)
        return [message.split(b"\r\n")[4] for message in self.said.written if b"COPIED" in message]


@pytest.fixture
def replica() -> Iterator[Replica]:
    found = Replica()
    yield found
    found.close()


def test_a_replica_has_a_copy_once_its_link_is_up_and_none_while_another_one_comes(replica: Replica) -> None:
    master_id = replica.map.members[0].id.encode()
    assert replica.told() == []

    replica.master.set_link(links.CONNECTED, NOW_MS)
    assert replica.told() == [master_id]
    replica.master.set_link(links.CONNECT, NOW_MS)
    assert replica.told() == []
    replica.master.set_link(links.SYNCING, NOW_MS)
    assert replica.told() == [b""]
    replica.master.set_link(links.CONNECTED, NOW_MS)
    assert replica.told() == [master_id]


def test_a_replica_that_was_a_master_meanwhile_has_no_copy_yet(replica: Replica) -> None:
    replica.master.set_link(links.CONNECTED, NOW_MS)
    replica.told()
    own, other = replica.member.id, replica.map.members[0].id
    for master_id in ("", other):
        replica.member.master_id = master_id
        replica.data_received(replica.map_message())

    assert replica.member.id == own
    assert replica.told() == [b""]


class Handshaken(MasterLink):
    """A link to a master that offers a copy."""

    async def _shake_hands(self, link: Wire) -> bytes:
        return b"+FULLRESYNC %b 100" % ID.encode()


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_map_that_comes_while_a_copy_is_loaded_changes_the_role_afterwards(replica: Replica, is_whole: bool) -> None:
    copy = snapshot("SET k v")
    came = copy if is_whole else copy[:-1] + bytes([copy[-1] ^ 1])
    roles: list[bool] = []  # whether there is a master: when the map has come, and afterwards

    def map_comes() -> None:
        if replica.engine.conditions.loading and not roles:
            replica.map.promote(replica.member)
            replica.data_received(replica.map_message())
        roles.append(replica.engine.replication.master is not None)

    async def follow() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(b"$%d\r\n%b" % (len(came), came))
        link = Handshaken(replica.engine, MemoryDisk(), lambda line: None, map_comes)
        await link._use(Wire(reader, cast(asyncio.StreamWriter, None), replica.master, lambda: 0), PATIENCE_S)

    with pytest.raises((LinkLost, UsageError)):
        asyncio.run(follow())
    assert roles == [True, False]


def test_messages_for_a_launcher_that_does_not_read_are_lost_and_counted(replica: Replica) -> None:
    replica.said.unsent = MOST_UNSENT + 1
    for _ in range(3):
        replica.publish(b"MESSAGE", b"news", b"lost")
    replica.said.unsent = 0
    replica.publish(b"MESSAGE", b"news", b"kept")

    assert [message for message in replica.said.written if b"news" in message] == [
        bulks([b"MESSAGE", b"news", b"kept"])
    ]
    assert [line.split(":")[0] for line in replica.lines] == ["The launcher does not read", "The launcher reads again"]
    assert replica.lines[1].endswith(" 3 messages of PUBLISH for its subscribers were lost.")


def test_a_node_whose_script_takes_long_reads_no_more_meanwhile(replica: Replica) -> None:
    replica.engine.conditions.busy = True
    timers = len(replica.time.timers)
    replica.data_received(replica.map_message())
    replica.data_received(replica.map_message())
    replica.time.pass_ms(50)
    assert not replica.said.reads
    assert len(replica.time.timers) == timers + 1
    assert bulks([b"APPLIED", b"1"]) not in replica.said.written

    replica.engine.conditions.busy = False
    replica.time.pass_ms(50)
    assert replica.said.reads
    assert replica.said.written.count(bulks([b"APPLIED", b"1"])) == 2
