"""Drafts of recipes: what was found in a commit, as a file that a person completes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from perfquarry.data.registry import Repository
from perfquarry.harness.metadata.recipe import Recipe

Value = bool | str | list[str] | dict[str, str]


def text_of(repository: Repository, found: Recipe, sha: str) -> str:
    """The file: each field with what it means and what was found.

    Every line is commented out: what it says is found in each commit anew, until a person decides it for all.
    """
    tests = [line for line in found.test_requirements if line not in found.requirements]
    values: dict[str, Value] = {  # the fields that a recipe is likely to need, in the order of the file
        "packages": found.packages,
        "source_dirs": found.source_roots,
        "project_dir": repository.project_dir,
        "python": found.requires_python or "",
        "requirements": [line for line in found.requirements if line != "pytest"],
        "build": found.build,
        "build_env": found.variables,
        "extras": repository.extras,
        "test_requirements": tests,
        "test_paths": repository.test_paths,
        "test_arguments": repository.test_arguments,
        "environment": repository.environment,
        "writable_tree": repository.writable_tree,
    }
    lines = [
        f"# Recipe of {repository.name}, drafted from {sha}.",
        "# What is not commented out holds for all commits, before the registry and what a commit itself says.",
        *(f"# Found: {note}" for note in found.notes),
        "# Only folders speak for these packages: are they right?" if found.guessed else "",
    ]
    for name, value in values.items():
        lines += ["", f"# {Repository.model_fields[name].description}", f"# {name} = {_toml(value)}"]
    return "\n".join(line for at, line in enumerate(lines) if line or at > len(found.notes) + 2) + "\n"


def _toml(value: Value) -> str:
    """A value as TOML, whose texts and lists are written as JSON's."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {json.dumps(one)}" for key, one in value.items()) + "}"
    return json.dumps(value)
