"""Table `builds`: one side of one change made runnable."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from perfquarry.data.records.row import Row

Side = Literal["base", "head"]


class Build(Row):
    """Everything needed to run the side again is in `environment_id`, `python`, `requirements` and `commands`."""

    TABLE: ClassVar[str] = "builds"
    KEY: ClassVar[tuple[str, ...]] = ("change_id", "side")

    build_id: str = Field(description="Content address of all that determines the build; equal for shared builds.")
    change_id: str
    side: Side
    sha: str
    python: str = Field(default="", description="Version of the interpreter, 'X.Y.Z'.")
    environment_id: str = Field(default="", description="Content address of interpreter and dependencies.")
    requirements: list[str] = Field(default_factory=list, description="Installed distributions, 'name==version'.")
    commands: list[str] = Field(default_factory=list, description="Commands that made the environment and the tree.")
    system_packages: list[str] = Field(
        default_factory=list, description="Debian packages installed for it, beside compiler and interpreter."
    )
    source_roots: list[str] = Field(default_factory=list, description="Folders of the tree put on sys.path, relative.")
    writable_tree: bool = Field(
        default=False, description="Each process of its tests has a copy of the tree to write into."
    )
    seconds: float = Field(default=0.0, description="Wall time of making it here; near 0 when it was shared.")
    bytes: int = Field(default=0, description="Disk used by what this build added.")
    tries: int = Field(default=1, description="Times it was tried; above 1 where a time limit ended the ones before.")
    log: str = Field(default="", description="End of the output of the commands, at most 16 KiB.")
