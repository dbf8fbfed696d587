"""Fits the heuristic judge's weights: logistic regression with an L2 penalty and signs fixed beforehand.

A signal that speaks for a gain may not get a negative weight and one that speaks against may
not get a positive one, so that the reasons in a verdict always make sense and chance in a few
hundred labels cannot turn them round. Minimised with L-BFGS-B (scipy).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Floats = NDArray[np.float64]

AGAINST = frozenset(
    {
        "speed_elsewhere", "sync", "title_fix", "title_chore", "title_feature", "source_files", "lines", "tests_added",
        "docs_changed", "new_source_file", "build_files", "merge", "new_public_names", "new_errors", "type_hints",
        "imports", "strings", "only_additions", "only_deletions",
    }
)  # fmt: skip
EITHER = frozenset({"tiny", "functions", "release_notes", "compiled_source", "new_definitions"})
"""Signals without a sign of their own; every other one speaks for a gain."""


def matrix(rows: Sequence[dict[str, float]], names: Sequence[str]) -> Floats:
    """Values of the named signals, shape (rows, names)."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows], dtype=np.float64).reshape(-1, len(names))


def fit(values: Floats, truth: Floats, names: Sequence[str], penalty: float) -> Floats:
    """Intercept and weights, shape (1 + names,); `truth` is 0 or 1 a row, `penalty` the L2 factor (1/C)."""
    design = np.hstack([np.ones((len(values), 1)), values])
    ridge = np.array([0.0] + [penalty] * len(names))
    bounds = [(None, None)] + [
        (None, None) if n in EITHER else (None, 0.0) if n in AGAINST else (0.0, None) for n in names
    ]

    def loss(theta: Floats) -> tuple[float, Floats]:
        score = design @ theta
        value = float(np.sum(np.logaddexp(0.0, score) - truth * score) + 0.5 * np.sum(ridge * theta**2))
        return value, design.T @ (expit(score) - truth) + ridge * theta

    return np.asarray(minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", bounds=bounds).x)


def left_out_scores(
    values: Floats, truth: Floats, names: Sequence[str], groups: Sequence[str], penalty: float
) -> Floats:
    """Log-odds of each row by a fit that saw no row of its group (repository)."""
    owner = np.array(groups)
    scores = np.zeros(len(values))
    for group in sorted(set(groups)):
        here = owner == group
        theta = fit(values[~here], truth[~here], names, penalty)
        scores[here] = theta[0] + values[here] @ theta[1:]
    return scores


def calibrate(scores: Floats, truth: Floats, weights: Floats) -> tuple[float, float]:
    """(slope, intercept) that turn scores into log-odds at the histories' own base rate (Platt 1999).

    `weights` are inverse probabilities of having been sampled, so the rows stand for whole histories.
    """

    def loss(theta: Floats) -> float:
        score = theta[0] * scores + theta[1]
        return float(np.sum(weights * (np.logaddexp(0.0, score) - truth * score)))

    slope, intercept = minimize(loss, np.array([1.0, -1.0]), method="L-BFGS-B", bounds=[(0.05, 5.0), (None, None)]).x
    return float(slope), float(intercept)
