"""Each stream command and each of its options is sent by a transcript, but for those of a list that gets shorter."""

from penstock.commands import registry
from tools.command_reference import option_table

NOT_SENT = {"XGROUP HELP", "XINFO HELP"}  # their texts are our own (tests/test_laws.py)


def test_every_word_of_a_stream_command_is_sent_by_a_transcript() -> None:
    rows = [one for row in registry.table().values() for one in (row, *row.subcommands.values())]
    lines = option_table([row for row in rows if not row.is_container]).splitlines()[9:]

    assert len(lines) > 90
    assert {line.split("|")[1].strip().strip("`") for line in lines if line.endswith("| none |")} == NOT_SENT
