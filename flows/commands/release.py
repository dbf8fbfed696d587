"""`perfquarry release`: make, check, show and upload a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from perfquarry.data.errors import InputError
from perfquarry.flows.commands.shared import Json as JsonOption
from perfquarry.flows.homes import home_of

FolderArgument = Annotated[Path, typer.Argument(help="Folder of a release.")]


def register(app: typer.Typer) -> None:
    """Adds `release` and its commands."""
    group = typer.Typer(
        invoke_without_command=True, help="Make, check, show and upload a dataset of the accepted tasks."
    )
    group.callback()(make)
    group.command()(check)
    group.command()(page)
    group.command()(upload)
    app.add_typer(group, name="release")


def make(
    context: typer.Context,
    repo: Annotated[list[str] | None, typer.Option(help="Repository whose accepted tasks go in; repeatable.")] = None,
    version: Annotated[str, typer.Option(help="Version of the dataset, such as 0.1.0.")] = "",
    to: Annotated[Path | None, typer.Option(help="Folder to write; an older release there is replaced.")] = None,
    name: Annotated[str, typer.Option(help="Name of the dataset.")] = "perfquarry",
    reviews: Annotated[
        Path | None, typer.Option(help="Curators' decisions (Parquet); rejected tasks stay out.")
    ] = None,
    checked: Annotated[
        Path | None, typer.Option(help="Output of `release check --json`: tasks that did not pass stay out.")
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the version before, for the changelog.", show_default="the version that --to holds"
        ),
    ] = None,
    home: Annotated[list[Path] | None, typer.Option(help="Home; repeatable: the first that has a repository.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the accepted tasks as a dataset: Parquet, card, checksums, changelog."""
    if context.invoked_subcommand:
        return
    if not (repo and version and to):
        raise InputError("give --repo NAME, --version X.Y.Z and --to DIR; or a command: check, page, upload")
    from perfquarry.flows.releasing import release

    homes = [home_of(folder) for folder in home] if home else [home_of(None)]
    manifest, changes = release(homes, repo, version, name, to, reviews, checked, previous)
    if as_json:
        facts = {"folder": str(to), **manifest.model_dump(mode="json"), "changes": changes.model_dump()}
        print(json.dumps({**facts, "expected_false": manifest.expected_false}, indent=2))
        return
    say = Console(highlight=False, markup=False, soft_wrap=True).print
    counts = ", ".join(f"{count} {name}" for name, count in manifest.rows.items())
    say(f"{to}: {manifest.name} {manifest.version}, rows: {counts}")
    for one in manifest.left_out:
        say(f"left out: {one.task_id}: {one.why}")
    if manifest.previous:
        parts = f"{len(changes.added)} added, {len(changes.removed)} removed, {len(changes.changed)} changed"
        say(f"against {manifest.previous}: {parts}")
    say(f"check it with: perfquarry release check {to}")


def check(
    folder: FolderArgument,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Also run every task, with its patch and with none.")
    ] = True,
    home: Annotated[
        Path | None, typer.Option(help="Where tasks are made.", show_default="cache/release of the default home")
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file with settings.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a release: files, schema, leaks, recipes; every task passes with its patch and fails without."""
    from perfquarry.data.home import Home
    from perfquarry.flows.options import settings_from
    from perfquarry.flows.release_gate import gate

    place = home_of(home) if home else Home(home_of(None).cache / "release")
    if not gate(folder, place, settings_from(settings, "heuristic", "unit-test"), run=run, as_json=as_json):
        raise typer.Exit(1)


def page(
    folder: FolderArgument,
    to: Annotated[
        Path | None, typer.Option(help="Folder of the page.", show_default="the release's folder with -page at its end")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Report of `perfquarry evaluate` on this release: best known, discrimination.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a release as a page to look at: works offline, needs no server and asks no host for anything."""
    from perfquarry.curation.release.site import write_site

    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        drawn = bar.add_task("pages", total=None)
        site = write_site(folder, to, report, lambda done, pages: bar.update(drawn, completed=done, total=pages))
    if as_json:
        print(site.model_dump_json(indent=2))
        return
    say = Console(highlight=False, markup=False, soft_wrap=True).print
    size = f"{site.pages} pages, {site.bytes / 2**20:.1f} MiB"
    say(f"{site.tasks} task{'' if site.tasks == 1 else 's'}, {size}; open it with: {site.folder}/index.html")


def upload(
    folder: FolderArgument,
    to: Annotated[str, typer.Option(help="Repository of the Hub: owner/name.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be sent.")] = False,
    private: Annotated[bool, typer.Option(help="A new repository is private.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Upload a release to the Hugging Face Hub (HF_ENDPOINT, HF_TOKEN); run again, it goes on."""
    from perfquarry.curation.release.upload import upload as send

    plan = send(folder, to, dry_run=dry_run, private=private)
    if as_json:
        print(plan.model_dump_json(indent=2))
        return
    say = Console(highlight=False, markup=False, soft_wrap=True).print
    for name, size in plan.files.items():
        say(f"{size:>12,}  {name}")
    for name in plan.removed:
        say(f"{'removed':>12}  {name}")
    total = f"{len(plan.files)} files, {sum(plan.files.values()):,} bytes; {len(plan.unchanged)} are there already"
    done = f"done: {plan.commit} ({plan.tag})" if plan.commit else "nothing was sent"
    say(f"{total}\n{done}")
