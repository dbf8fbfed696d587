"""Attempts at building a change, each with what the log of an earlier one asks for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, get_args

from perfquarry.data.records import Amendment, Attempt, Change, Reason, Stamp, Step
from perfquarry.harness.building.distributions import distribution, known_distributions
from perfquarry.harness.building.pending import PendingSide
from perfquarry.harness.building.repair_rules import Situation, plus, proposals
from perfquarry.harness.metadata.recipe import Recipe
from perfquarry.harness.rejections import Rejection, tail
from perfquarry.harness.settings import BuildSettings

REMEMBERED = "nearest known-good"
PROPOSED = "proposed"
_STEPS: tuple[Step, ...] = get_args(Step)
LOG_BYTES = 4096
"""Bytes of its log that an attempt's row keeps."""


class Proposer(Protocol):
    """A last resort where no rule fits, such as a language model.

    What it names is tried only where it is a known distribution or one the tree declares: logs are strangers' words.
    """

    def __call__(self, change: Change, log: str, recipe: Recipe) -> Sequence[str]:
        """Requirements (PEP 508) that may help, of both sides' log and the base's recipe; none when it has no idea."""


@dataclass
class RepairAttempt:
    """One attempt."""

    amendment: Amendment
    rule: str
    sides: Sequence[PendingSide]
    step: Step
    """The one that failed, or built."""
    log: str
    """Of what failed."""
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether a side could not be made runnable."""
        return any(pending.rejection for pending in self.sides)

    @property
    def rank(self) -> int:
        """How far it came."""
        return _STEPS.index(self.step)


@dataclass
class Repair:
    """The attempts at one change.

    Args:
        provide: installs Debian packages; None when they are there, else why not.
        propose: asked for requirements, of a log and the base's recipe, when no rule fits.
    """

    make: Callable[[Amendment, str], RepairAttempt]
    situate: Callable[[RepairAttempt], Situation]
    provide: Callable[[Sequence[str]], str | None]
    settings: BuildSettings
    propose: Callable[[str, Recipe], Sequence[str]] | None = None
    trials: list[RepairAttempt] = field(default_factory=list)
    """All attempts, in the order of trying."""
    _refused: list[Amendment] = field(default_factory=list)

    def run(self, start: Amendment) -> RepairAttempt:
        """The attempt to keep: the first that built all, else the one that came farthest.

        An attempt is built upon when it came as far as the one before and its log no longer asks for the same. Where it
        came less far, what was added may need a repair itself: one is tried.

        Args:
            start: what served a neighbour; tried first, and dropped when the change comes farther without it.
        """
        deadline = time.monotonic() + self.settings.attempts_seconds
        if start.system_packages and self.provide(start.system_packages):
            start = Amendment()
        best = self._try(start, REMEMBERED if start else "")
        if start and best.failed:
            plain = self._try(Amendment(), "")
            best = plain if plain.rank > best.rank else best
            self._refused.append(start)
        while best.step != "built" and len(self.trials) < self.settings.attempts and time.monotonic() < deadline:
            chosen = next(self._proposals(best), None)
            if chosen is None:
                break
            trial = self._repaired(*chosen)
            if trial.rank < best.rank and len(self.trials) < self.settings.attempts:
                onward = next(self._by_rules(trial), None)
                trial = self._repaired(*onward) if onward else trial
            if trial.rank > best.rank or (trial.rank == best.rank and trial.log != best.log and self._helped(trial)):
                best = trial
        return best

    def _repaired(self, rule: str, amendment: Amendment) -> RepairAttempt:
        self._refused.append(amendment)
        return self._try(amendment, rule)

    def _try(self, amendment: Amendment, rule: str) -> RepairAttempt:
        trial = self.make(amendment, rule)
        self.trials.append(trial)
        return trial

    def _helped(self, trial: RepairAttempt) -> bool:
        """Whether the log no longer asks for what was added."""
        return all(amendment != trial.amendment for _, amendment in proposals(self.situate(trial)))

    def _proposals(self, best: RepairAttempt) -> Iterator[tuple[str, Amendment]]:
        yield from self._by_rules(best)
        if self.propose:
            recipe = best.sides[0].recipe
            declared = {distribution(line) for line in (*recipe.requirements, *recipe.declared)}
            names = known_distributions() | declared
            lines = [line for line in self.propose(best.log, recipe) if distribution(line) in names]
            amendment = plus(best.amendment, lines)
            if amendment != best.amendment and amendment not in self._refused:
                yield PROPOSED, amendment

    def _by_rules(self, best: RepairAttempt) -> Iterator[tuple[str, Amendment]]:
        for rule, amendment in proposals(self.situate(best)):
            if amendment == best.amendment or amendment in self._refused:
                continue
            further = [name for name in amendment.system_packages if name not in best.amendment.system_packages]
            if further and (why := self.provide(further)):
                _blame(best, further, why)
                continue
            yield rule, amendment


def _blame(trial: RepairAttempt, packages: Sequence[str], why: str) -> None:
    """Makes missing Debian packages the reason for which a trial failed."""
    for pending in trial.sides:
        if pending.rejection and pending.rejection.reason is not Reason.SYSTEM_PACKAGE_MISSING:
            said = f"{pending.rejection.log}\nneeds the Debian package(s) {' '.join(packages)}: {why}"
            pending.reject(Rejection(Reason.SYSTEM_PACKAGE_MISSING, said))


def rows_of(trials: Sequence[RepairAttempt], best: RepairAttempt, change: Change, stamp: Stamp) -> tuple[Attempt, ...]:
    """Two rows an attempt, base first; both kept, or both with the reason why it did not do."""
    rows = []
    for number, trial in enumerate(trials, 1):
        rejection = next((pending.rejection for pending in trial.sides if pending.rejection), None)
        for pending in trial.sides:
            environment = pending.environment
            rows.append(
                Attempt(
                    **stamp.fields(),
                    status="rejected" if rejection else "kept",
                    reason=rejection.reason if rejection else None,
                    change_id=change.change_id,
                    side=pending.side,
                    number=number,
                    merged_at=change.merged_at,
                    python=str(pending.python.version) if pending.python else "",
                    requirements=pending.recipe.requirements,
                    commands=[*(environment.commands if environment else []), *pending.recipe.build],
                    outcome=trial.step,
                    rule=trial.rule,
                    amendment=trial.amendment,
                    chosen=trial is best,
                    seconds=trial.seconds,
                    log=tail(trial.log, LOG_BYTES),
                )
            )
    return tuple(rows)
