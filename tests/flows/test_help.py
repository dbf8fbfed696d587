"""What `--help` shows: every command in its group, every option as it was written."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
import typer
from typer.testing import CliRunner

from perfquarry.flows.cli import GROUPS, app

WHOLE = typer.main.get_command(app)


def commands(command: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """Paths of all commands below this one."""
    for name, one in getattr(command, "commands", {}).items():
        yield (*path, name)
        yield from commands(one, *path, name)


def test_each_command_stands_once_in_a_group_in_order() -> None:
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(getattr(WHOLE, "commands", {}))
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    places = [shown.index(f"─ {group} ─") for group in GROUPS]
    assert places == sorted(places) and "perfquarry curate demo" in " ".join(shown.split())


@pytest.mark.parametrize("path", list(commands(WHOLE)), ids=" ".join)
def test_help_swallows_nothing_in_brackets(path: tuple[str, ...]) -> None:
    command = WHOLE
    for name in path:
        command = getattr(command, "commands")[name]  # noqa: B009  # click's groups and typer's differ in type
    told = [one.help for one in command.params if getattr(one, "help", None)]
    output = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert output.exit_code == 0
    for text in told:
        for word in text.replace("\\[", "[").split():
            if "[" in word:
                assert word in output.output, f"{word} of {text!r} is missing"
