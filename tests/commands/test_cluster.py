"""CLUSTER and MODULE where there is neither cluster nor module: what clients are told, and a real Redis beside it."""

import pytest

from penstock.commands import registry
from penstock.commands.cluster.cluster_nodes import DISABLED
from tests.support.dialogue import Dialogue
from tests.support.replies_beside_redis import replies_of_both

SUBCOMMANDS = sorted(row.title.replace("|", " ") for row in registry.table()[b"CLUSTER"].subcommands.values())
ALONE = ("READONLY", "READWRITE", "ASKING")
WORDS = {  # behind the subcommand, where it takes some
    "addslots": "1", "addslotsrange": "1 2", "count-failure-reports": "x", "countkeysinslot": "1", "delslots": "1",
    "delslotsrange": "1 2", "forget": "x", "getkeysinslot": "1 1", "keyslot": "a", "meet": "127.0.0.1 1",
    "migration": "STATUS ALL", "replicas": "x", "replicate": "x", "set-config-epoch": "1", "setslot": "1 STABLE",
    "slaves": "x", "slot-stats": "SLOTSRANGE 0 1", "syncslots": "SYNC x",
}  # fmt: skip
REQUESTS = [f"{name} {WORDS.get(name.split()[1], '')}".rstrip() for name in SUBCOMMANDS] + list(ALONE)
REFUSED = (
    "MODULE LOAD /nowhere.so",
    "MODULE LOADEX /nowhere.so CONFIG a b ARGS c",
    "MODULE UNLOAD nosuch",
    "MODULE LIST x",
    "MODULE LOAD",
    "MODULE UNLOAD",
    "MODULE NOSUCH",
    "MODULE",
    "CLUSTER",
    "CLUSTER NOSUCH",
    "CLUSTER INFO x",
    "CLUSTER KEYSLOT",
    "READONLY x",
    "ASKING x",
)


@pytest.mark.parametrize("line", REQUESTS)
def test_a_server_alone_refuses_what_a_node_of_a_cluster_answers(dialogue: Dialogue, line: str) -> None:
    assert dialogue.raw(line) == b"-%b\r\n" % DISABLED


@pytest.mark.parametrize("resp", [2, 3])
def test_the_refusals_are_the_reference_s(reference_port: int, resp: int) -> None:
    theirs, ours = replies_of_both(reference_port, [*REQUESTS, *REFUSED], resp)

    assert ours == theirs


def test_no_modules_are_listed(dialogue: Dialogue) -> None:
    assert dialogue.raw("MODULE LIST") == b"*0\r\n"


def test_modules_cannot_be_loaded(dialogue: Dialogue) -> None:
    assert dialogue.raw("MODULE LOAD /nowhere.so").startswith(b"-ERR MODULE command not allowed. If the enable-module")


def test_a_script_cannot_ask_for_modules(dialogue: Dialogue) -> None:
    assert b"This Redis command is not allowed from script" in dialogue.raw(
        "EVAL \"return redis.call('MODULE', 'LIST')\" 0"
    )
