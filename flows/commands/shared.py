"""Arguments and options that commands share, and how their texts are read. Nothing here imports what takes long."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from perfquarry.data.errors import InputError
from perfquarry.data.home import home_of
from perfquarry.data.output import Report, put
from perfquarry.flows.commands.completion import repositories, tasks

if TYPE_CHECKING:
    from perfquarry.flows.options import Options

C = TypeVar("C", bound=Callable[..., Any])
R = TypeVar("R")


EXAMPLES: dict[str, str] = {}
"""By the path of a command a right use of it: shown by its help, and by the errors of wrong uses."""


class Commands(typer.Typer):
    """Commands with examples; those that return a report have --json, and print it."""

    def __init__(self, name: str, example: str = "", **given: Any) -> None:
        self._before = f"{name} " if example else ""  # the whole command has no example of its own
        super().__init__(name=name, epilog=_shown(name, example) if example else None, **given)

    def command(  # type: ignore[override]
        self, name: str | None = None, *, example: str, **given: Any
    ) -> Callable[[C], C]:
        """Registers a command, with a right use of it: the words after `perfquarry`."""

        def decorated(command: C) -> C:
            path = self._before + (name or command.__name__)
            super(Commands, self).command(name, epilog=_shown(path, example), **given)(reporting(command))
            return command

        return decorated


def _shown(path: str, example: str) -> str:
    EXAMPLES[path] = f"perfquarry {example}"
    return "Example: [bold]" + EXAMPLES[path].replace("[", "\\[") + "[/]"


def reporting(command: Callable[..., Any]) -> Callable[..., None]:
    """The command, which prints the report that it returns, with the exit code of that; others as they are."""
    signature = inspect.signature(command, eval_str=True)
    if signature.return_annotation is not Report:
        return command
    knows = "as_json" in signature.parameters  # for what it shows meanwhile

    @functools.wraps(command)
    def called(as_json: bool, **given: Any) -> None:
        report = command(**given, **({"as_json": as_json} if knows else {}))
        put(report, as_json=as_json)
        if report.code:
            raise typer.Exit(report.code)

    json = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    return _with_parameters(called, list({**signature.parameters, "as_json": json}.values()))


def _with_parameters(
    command: Callable[..., R], parameters: Sequence[inspect.Parameter], returned: object = None
) -> Callable[..., R]:
    """The command, of which typer sees these parameters."""
    command.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


app = Commands(
    "perfquarry",
    help="Mines the history of repositories for performance improvements and turns them into verified tasks. "
    "First: [bold]perfquarry curate demo[/]",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
"""The command; each module of `flows.commands` adds its own."""

_REPO = typer.Argument(help="Name in the registry, git URL, or local path.", autocompletion=repositories)
_TASK = typer.Argument(help="Task id, or the start of one, or of a head's hash.", autocompletion=tasks)

Repo = Annotated[str, _REPO]
SomeRepo = Annotated[str | None, _REPO]
TaskId = Annotated[str, _TASK]
Clone = Annotated[str | None, typer.Option("--source", help="Clone from this path or URL.")]
OnlyTasks = Annotated[str, typer.Option("--tasks", help="Only these tasks: ID,ID (beginnings are enough).")]
MadeWith = Annotated[
    str | None, typer.Option("--workloads", help="The sources with which the tasks were made, as given to curate.")
]
HomeFolder = Annotated[
    Path | None,
    typer.Option("--home", help="Folder with all state.", show_default="PERFQUARRY_HOME or ./var"),
]
Server = Annotated[bool, typer.Option("--server/--no-server", help="Record the run on a Prefect server.")]
Json = Annotated[bool, typer.Option("--json", help="Print facts as JSON, nothing else.")]

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].+)?")


def date_of(option: str, text: str | None) -> datetime | None:
    """The date of an option, in UTC where it names no zone.

    Raises:
        InputError: it is no date.
    """
    if text is None:
        return None
    try:
        if not _DATE.fullmatch(text.strip()):
            raise ValueError
        date = datetime.fromisoformat(text.strip())
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{option} {text!r} is no date: give one such as 2024-01-31, or 2024-01-31T12:00Z") from error


def dates_of(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Both dates.

    Raises:
        InputError: one is no date, or no change can lie between them.
    """
    begin, end = date_of("--since", since), date_of("--until", until)
    if begin and begin > datetime.now(UTC):
        raise InputError(f"--since {begin:%Y-%m-%d} is in the future: give a date of the past, such as 2024-01-31")
    if begin and end and begin >= end:
        raise InputError(
            f"--since {begin:%Y-%m-%d} is not before --until {end:%Y-%m-%d}: no change lies between them; "
            "give an earlier --since, such as 2020-01-31"
        )
    return begin, end


def parts_of(option: str, text: str | None) -> tuple[str, ...]:
    """The parts of a text with commas; none where it was not given.

    Raises:
        InputError: it was given and has none.
    """
    found = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    if text is not None and not found:
        raise InputError(f"{option} is empty: give parts with commas between them, such as a1b2c3d,e4f5a6b")
    return found


def options_of(
    repo: Repo,
    source: Annotated[str | None, typer.Option(help="Clone from this path or URL instead of the registry's.")] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only changes that reached the branch on or after this date: 2024-01-31."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only changes that reached the branch before this date.")
    ] = None,
    changes: Annotated[
        str | None, typer.Option(help="Only these head commits: SHA,SHA (unique prefixes are enough).")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Take up the N most probable unfinished changes in this run.")
    ] = None,
    seconds: Annotated[
        str | None, typer.Option("--for", help="No further change is begun after so long: 90s, 30m, 2h, 1d.")
    ] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="End once the repository has N accepted tasks.")] = None,
    judge: Annotated[
        str, typer.Option(help="Judge: heuristic, cascade, openai:MODEL, anthropic:MODEL, exchange:DIR, cassette:DIR.")
    ] = "heuristic",
    workloads: Annotated[
        str | None,
        typer.Option(
            help="Sources, with commas: unit-test, asv, generated, replay.",
            show_default="unit-test; where it shows nothing asv, replay and, with --llm, generated",
        ),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(help="Model for the judge cascade and for generated workloads: openai:MODEL, exchange:DIR, …"),
    ] = None,
    budget_usd: Annotated[float | None, typer.Option(min=0, help="Upper limit for model costs in USD.")] = None,
    home: HomeFolder = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Builds and selections at the same time.", show_default="cores")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option("--settings", help="TOML file with settings: \\[resources], one table per stage.")
    ] = None,
) -> Options:
    """The options of a command, resolved.

    Raises:
        InputError: one of them cannot be.
    """
    for text in (repo, source or ""):
        if not text.isprintable():
            raise InputError(f"{text!r} has bytes that are no text: give a name, an address or a path such as numpy")
    begin, end = dates_of(since, until)
    heads, place = parts_of("--changes", changes), home_of(home)
    from perfquarry.data.figures import seconds_of
    from perfquarry.flows.options import Options, settings_from
    from perfquarry.harness.measuring.machine import cores_of_process

    return Options(
        repo=repo,
        source=source,
        since=begin,
        until=end,
        changes=heads,
        limit=limit,
        home=str(place.root),
        jobs=jobs or cores_of_process(),
        seconds=seconds_of(seconds) if seconds is not None else None,
        tasks=tasks,
        settings=settings_from(settings, judge, workloads, budget_usd, llm),
    )


Asked = functools.partial["Options"]
"""`options_of` with what was given; called, it resolves that."""
_PARAMETERS = inspect.signature(options_of).parameters
_ANNOTATIONS = get_type_hints(options_of, localns={"Options": Any}, include_extras=True)


def with_options(*names: str, **instead: object) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A command that takes these parameters of `options_of`, all without names, and gets them as its first, `Asked`.

    Args:
        names: of the parameters.
        instead: further ones, with an annotation of the command's own.
    """

    def decorated(command: Callable[..., R]) -> Callable[..., R]:
        _, *own = inspect.signature(command).parameters.values()
        hints = get_type_hints(command, localns={"Options": Any, "Asked": Any}, include_extras=True)
        kinds = _ANNOTATIONS | hints | instead
        shared = [_PARAMETERS[name] for name in (*names, *instead)] or list(_PARAMETERS.values())

        @functools.wraps(command)
        def called(**given: Any) -> R:
            asked = functools.partial(options_of, **{one.name: given.pop(one.name) for one in shared})
            return command(asked, **given)

        parameters = [one.replace(kind=one.KEYWORD_ONLY, annotation=kinds[one.name]) for one in (*own, *shared)]
        parameters.sort(key=lambda one: one.name in ("server", "as_json"))  # in the help these come last
        return _with_parameters(called, parameters, hints["return"])

    return decorated
