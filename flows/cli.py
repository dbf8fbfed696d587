"""The command line: `perfquarry`. Its commands are in `flows.commands`, its errors and exit codes here."""

from __future__ import annotations

import atexit
import contextlib
import copy
import errno
import gc
import importlib
import io
import logging
import os
import pkgutil
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text
from typer.exceptions import TyperException
from typer.models import CommandInfo, TyperInfo

import perfquarry
from perfquarry.data.errors import InputError, PerfquarryError
from perfquarry.flows import commands
from perfquarry.flows.commands.shared import EXAMPLES, app

GROUPS: dict[str, tuple[str, ...]] = {
    "Make tasks": (
        *("curate", "mine", "judge", "build", "generate", "measure", "select", "screen", "count"),
        *("pulls", "recipe", "exchange"),
    ),
    "Look": ("tasks", "show", "funnel", "workloads", "sampling", "statistics", "costs", "status", "ui"),
    "Review": ("review", "problems"),
    "Release": ("release", "export", "image", "revalidate", "stability"),
    "Evaluate": ("solve", "evaluate", "analyse", "leaderboard"),
    "Operate": ("doctor", "gc", "schedule", "worker"),
}
"""Commands as `--help` lists them."""

FAILED, WRONG, INTERRUPTED = 1, 2, 130
"""Exit codes: the work failed, bad usage or input, Ctrl-C."""
_OF_A_PLACE = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.ENOENT, errno.ENAMETOOLONG, errno.ELOOP}
)
"""Errors of the system that say: what was named cannot be read or written."""

SELDOM = 50_000
"""Objects more than were freed, after which their cycles are looked for; with Python's 700 it takes a tenth of the
time of a command that imports libraries and reads tables."""
_UNTIL_INTERRUPTED = frozenset({"review", "status", "ui", "worker"})
"""Commands that Ctrl-C ends as they are meant to end."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"perfquarry {perfquarry.__version__}")
        raise typer.Exit


@app.callback()
def _whole(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


for _module in pkgutil.iter_modules(commands.__path__):  # each adds its own; they import the rooms when called
    importlib.import_module(f"{commands.__name__}.{_module.name}")


def _grouped() -> None:
    """Puts the commands into their groups, in their order."""
    places = [(name, group) for group, names in GROUPS.items() for name in names]
    order, groups = [name for name, _ in places], dict(places)
    for registered in (app.registered_commands, app.registered_groups):
        registered.sort(key=lambda one: order.index(_name_of(one)))
        for one in registered:
            one.rich_help_panel = groups[_name_of(one)]


def _name_of(one: CommandInfo | TyperInfo) -> str:
    name = one.typer_instance.info.name if isinstance(one, TyperInfo) and one.typer_instance else one.name
    return str(name or getattr(one.callback, "__name__", ""))


_grouped()


def _asked() -> typer.Typer:
    """The application with the command alone that the first word names: forty others are not made for one."""
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    whole: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    if first not in {_name_of(one) for one in whole}:
        return app
    asked = copy.copy(app)
    asked.registered_commands = [one for one in app.registered_commands if _name_of(one) == first]
    asked.registered_groups = [one for one in app.registered_groups if _name_of(one) == first]
    return asked


def entry() -> NoReturn:
    """The whole process, which ends once all is written and all handlers have run.

    What the interpreter does after them is left out: threads of libraries that still give their memory back then
    abort a command whose work is done ("terminate called without an active exception", exit code -6; apache/arrow
    34314 and 50482).
    """
    gc.set_threshold(SELDOM)
    ends = [FAILED]

    def leave() -> None:
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(ends[0])

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):  # not nohup's
            signal.signal(number, _interrupt)
    atexit.register(leave)  # the handlers of what is imported later run before it
    try:
        main()
    except SystemExit as end:
        ends[0] = end.code if isinstance(end.code, int) else FAILED if end.code else 0
        raise
    sys.exit()


_interrupted = threading.Event()


def _interrupt(*_: object) -> NoReturn:
    """Says at once that the command ends: what runs in sandboxes and servers may need half a minute for that."""
    _interrupted.set()
    from perfquarry.data.logs import without_frames_of_ends

    without_frames_of_ends()
    if _path_of(sys.argv[1:]) not in _UNTIL_INTERRUPTED:
        with contextlib.suppress(OSError):
            os.write(2, b"\nending: what runs is stopped, what is done is kept\n")
    raise KeyboardInterrupt


def main() -> None:
    """The command: whatever goes wrong on purpose becomes one sentence on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files and terminals that are not UTF-8
    try:
        code = _done()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED and _path_of(sys.argv[1:]) not in _UNTIL_INTERRUPTED:
        again = shlex.join(["perfquarry", *sys.argv[1:]])
        _end(INTERRUPTED, f"interrupted: what is done is kept; the same command goes on from here: {again}", who="")
    sys.exit(code)


def _done() -> int:
    """Does the command; its exit code. Ends the process where it went wrong."""
    try:
        code = _asked()(standalone_mode=False)
        if sys.stdout:
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except TyperException as error:
        _end_usage(error)
    except InputError as error:
        _end(WRONG, _with_example(str(error)))
    except BrokenPipeError:
        _end_unread()
    except PerfquarryError as error:
        logging.getLogger("perfquarry").info("ended with an error", exc_info=error)
        if _interrupted.is_set():  # Ctrl-C ended what it had started, too, such as git
            return INTERRUPTED
        _end(FAILED, str(error))
    except OSError as error:
        if error.errno not in _OF_A_PLACE or error.filename is None:
            raise
        _end(WRONG, _with_example(f"cannot use {error.filename}: {error.strerror}"))


def _end(code: int, text: str, *, who: str = "perfquarry: ") -> NoReturn:
    line = Text(who, "red").append(" ".join(text.split()), "default")
    Console(stderr=True).print(line, highlight=False, soft_wrap=True)
    sys.exit(code)


def _end_usage(error: TyperException) -> NoReturn:
    text = error.format_message()
    if "\n" in text:  # the help that a group shows without a command
        sys.stdout.write(text + "\n")
        sys.exit(WRONG)
    _end(WRONG, _with_example(text.rstrip(".")))


def _end_unread() -> NoReturn:
    """Nobody reads what is written (`| head`): no word more, not even at the interpreter's end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(FAILED)


def _with_example(text: str) -> str:
    """An error's text, with a right use of the same command where it names none itself."""
    example = EXAMPLES.get(_path_of(sys.argv[1:]), EXAMPLES["curate"])
    return text if any(sign in text for sign in ("perfquarry ", "such as ")) else f"{text}; for example: {example}"


def _path_of(arguments: Sequence[str]) -> str:
    """The longest path of a command with which the arguments begin."""
    words = [word for word in arguments if not word.startswith("-")]
    return next((path for path in (" ".join(words[:2]), *words[:1]) if path in EXAMPLES), "")


if __name__ == "__main__":
    main()
