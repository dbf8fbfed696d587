"""What `--help` shows: every command in its group, every option as it was written."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
import pytest
import typer
from typer.testing import CliRunner

from perfquarry.flows.cli import GROUPS, app
from perfquarry.flows.commands.shared import EXAMPLES

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
    assert not {"Args:", "Raises:"}.intersection((command.help or "").split()), "that is for readers of the code"
    texts = [one.help for one in command.params if getattr(one, "help", None)]
    output = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert output.exit_code == 0
    for text in texts:
        for word in text.replace("\\[", "[").split():
            if "[" in word:
                assert word in output.output, f"{word} of {text!r} is missing"


@pytest.mark.parametrize("path", list(commands(WHOLE)), ids=" ".join)
def test_each_command_shows_an_example_that_parses(path: tuple[str, ...]) -> None:
    example = EXAMPLES[" ".join(path)]
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).output
    assert f"Example: {example}" in shown
    words = shlex.split(example)
    assert words[0] == "perfquarry"
    command, arguments = WHOLE, words[1:]
    context = command.make_context("perfquarry", arguments.copy(), resilient_parsing=False)
    while (below := getattr(command, "commands", {})) and arguments and arguments[0] in below:
        command, arguments = below[arguments[0]], arguments[1:]
        context = command.make_context(words[1], arguments.copy(), parent=context)
    assert context.command is command and command is not WHOLE


def test_no_example_is_of_a_command_that_is_not_there() -> None:
    known = {" ".join(path) for path in commands(WHOLE)}
    assert set(EXAMPLES) - known <= {"release page"}
