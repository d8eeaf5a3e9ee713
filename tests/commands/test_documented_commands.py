"""The commands that the documentation of Redis 8.2 to 8.12 brought: each is in the table, or named as left out."""

import re
from pathlib import Path
from typing import Final

import pytest

from penstock.commands import registry

DIFFERENCES: Final = Path(__file__).parents[2] / "docs/differences.md"
BY_VERSION: Final = {
    "8.2": "XACKDEL XDELEX",
    "8.4": "DELEX DIGEST MSETEX",
    "8.6": "HOTKEYS|HELP HOTKEYS|START HOTKEYS|STOP HOTKEYS|RESET HOTKEYS|GET XCFGSET XIDMPRECORD",
    "8.8": "ARSET ARMSET ARGET ARMGET ARGETRANGE ARSCAN ARGREP ARDEL ARDELRANGE ARCOUNT ARLEN ARINSERT ARRING ARNEXT"
    " ARSEEK ARLASTITEMS AROP ARINFO INCREX XNACK",
    "8.10": "BACKUP BLMOVEM HIMPORT|PREPARE HIMPORT|SET HIMPORT|DISCARD HIMPORT|DISCARDALL LMOVEM SDIFFCARD SUNIONCARD",
    "8.12": "SEXPIRE SPEXPIRE SEXPIREAT SPEXPIREAT STTL SPTTL SEXPIRETIME SPEXPIRETIME SPERSIST SADDEX"
    " ZMOVE BZMOVE ZMOVEMEMBER BLESS|SET BLESS|CLEAR BLESS|GET BLESS|SCAN BLESS|HELP"
    " BITRANGEINTARRAY",
}


@pytest.mark.parametrize("version", BY_VERSION)
def test_every_documented_command_is_here_or_named_as_left_out(version: str) -> None:
    rows = [one for row in registry.table().values() for one in (row, *row.subcommands.values())]
    known = {row.name for row in rows}
    left_out = DIFFERENCES.read_text().partition("## Left out")[2].partition("\n## ")[0]

    missing = set(BY_VERSION[version].split()) - known

    assert {name for name in missing if not re.search(rf"\b{name}\b", left_out)} == set()
