"""`python -m tests.system.hostile [BACKEND...]` runs the corpus and prints how each program ended, as Markdown."""

from __future__ import annotations

import sys

from data.errors import InputError, SandboxUnavailable
from harness.sandbox import choose_sandbox
from tests.system.hostile.host import Host, visible_folder
from tests.system.hostile.programs import corpus
from tests.system.hostile.trials import Outcome, Range


def outcomes(backend: str) -> list[Outcome]:
    """Of all programs that can be run on the backend.

    Raises:
        InputError, SandboxUnavailable: it is not there.
    """
    sandbox = choose_sandbox(backend)
    with visible_folder() as folder, Host(folder).baited() as host, Range(sandbox, host).running() as submit:
        running = [submit(program) for program in corpus() if program.runs_on(backend)]
        return [outcome for one in running for outcome in one.result()]


def main(backends: list[str]) -> int:
    """Prints the table; 1 when a program did not end as it must."""
    wrong = 0
    print("| program | what it does | stage | backend | ends as | seconds |\n|---|---|---|---|---|---|")
    for backend in backends:
        try:
            found = outcomes(backend)
        except (InputError, SandboxUnavailable) as error:
            print(f"{backend} is not here: {error}", file=sys.stderr)
            continue
        for one in found:
            wrong += not one.as_expected
            said = one.reason if one.as_expected else f"**{one.reason}**, not {one.program.expected[one.stage]}"
            words = (one.program.name, one.program.title, one.stage, one.backend, said, f"{one.seconds:.1f}")
            print(f"| {' | '.join(words)} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ["bubblewrap", "docker", "process"]))
