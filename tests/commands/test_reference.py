"""docs/commands.md is made from the table and kept up to date."""

from pathlib import Path

from penstock.commands import registry
from penstock.engine.table.command_table import Command, build
from tests.commands.test_table import bare, row
from tools import command_reference
from tools.command_reference import page

PROJECT = Path(__file__).parents[2]


def test_the_page_of_commands_is_up_to_date() -> None:
    """If this fails: python -m tools.command_reference"""
    assert (PROJECT / command_reference.PAGE).read_text("utf-8") == page(registry.table().values())


def test_a_command_is_a_line_with_its_words_and_its_version() -> None:
    shown = page([row("XACK", "key group id [id ...]")])

    assert "## Streams\n\n- `XACK key group id [id ...]`\n  Says something. Since 5.0.0.\n" in shown


def test_subcommands_stand_for_their_container() -> None:
    shown = page(build([bare("XGROUP"), row("XGROUP|DESTROY", "key group")]).values())

    assert "- `XGROUP DESTROY key group`" in shown
    assert "Holds." not in shown


def test_a_deprecated_command_says_what_to_use() -> None:
    new = row("XOLD")
    old = Command(new.declared._replace(deprecated=("6.2.0", "`XNEW`")), new.handler)

    assert "Since 5.0.0. Deprecated since 6.2.0 (instead: `XNEW`)." in page([old])
