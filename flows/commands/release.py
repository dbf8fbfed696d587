"""`perfquarry release`: make, check, show and upload a dataset; `revalidate`: measure its tasks again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perfquarry.curation import Network
from perfquarry.data.errors import InputError
from perfquarry.data.home import Home, home_of
from perfquarry.data.output import Report, put, show
from perfquarry.flows.commands.completion import repositories
from perfquarry.flows.commands.shared import Asked, Clone, Commands, Json, OnlyTasks, app, parts_of, with_options

FolderArgument = Annotated[Path, typer.Argument(help="Folder of a release.")]


release = Commands(
    "release",
    "release --repo demo --version 0.1.0 --to dataset",
    invoke_without_command=True,
    help="Make, check, show and upload a dataset of the accepted tasks.",
)
app.add_typer(release)


@release.callback()
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
            help="Folder of the previous version, for the changelog.", show_default="the version that --to holds"
        ),
    ] = None,
    images_to: Annotated[
        str | None,
        typer.Option(help="Registry for the tasks' images, HOST/NAMESPACE: pushes them, and writes tasks/ for Harbor."),
    ] = None,
    base_image: Annotated[
        str, typer.Option("--base", help="--images-to: image to build on.", show_default="our own")
    ] = "",
    network: Annotated[Network, typer.Option(help="--images-to: no-network, or public.")] = "no-network",
    org: Annotated[str, typer.Option(help="--images-to: tasks are named ORG/TASK.")] = "perfquarry",
    withdraw: Annotated[
        list[str] | None, typer.Option(help="TASK=REASON: take a published task back; repeatable.")
    ] = None,
    replace: Annotated[
        list[str] | None, typer.Option(help="TASK=REASON: publish a changed version of a task; repeatable.")
    ] = None,
    home: Annotated[
        list[Path] | None, typer.Option(help="Home; repeatable: the first with the repository is used.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the accepted tasks as a dataset: Parquet, card, checksums, changelog."""
    if context.invoked_subcommand:
        return
    if not (repo and version and to):
        raise InputError("give --repo NAME, --version X.Y.Z and --to DIR; or a command: check, page, upload, registry")
    from perfquarry.curation.release.gathering import release as write
    from perfquarry.curation.release.harbor_folders import ImagesAsked

    errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    homes = [home_of(folder) for folder in home] if home else [home_of(None)]
    images = ImagesAsked(images_to, base_image, network, org) if images_to else None
    given = (_reasons(withdraw, "--withdraw"), _reasons(replace, "--replace"))
    manifest, changes = write(
        homes, repo, version, name, to, reviews, checked, previous, images, *given, say=errors.print
    )
    counts = ", ".join(f"{count} {name}" for name, count in manifest.rows.items())
    lines = [f"{to}: {manifest.name} {manifest.version}, rows: {counts}"]
    lines += [f"left out: {one.task_id}: {one.why}" for one in manifest.left_out]
    lines += [f"without a folder: {one.task_id}: {one.why}" for one in manifest.without_folder]
    if manifest.image_bytes:
        whole = f"{manifest.image_bytes / 2**30:.2f} GiB together"
        lines.append(f"{manifest.rows['tasks']} task folder(s); their images are in {images_to}, {whole}")
    if manifest.previous:
        parts = f"{len(changes.added)} added, {len(changes.removed)} removed, {len(changes.changed)} changed"
        lines.append(f"against {manifest.previous}: {parts}")
    lines.append(f"check it with: perfquarry release check {to}")
    facts = {"folder": to, **manifest.model_dump(mode="json"), "changes": changes}
    put(Report({**facts, "expected_false": manifest.expected_false}, lines), as_json=as_json)


def _reasons(given: list[str] | None, option: str) -> dict[str, str]:
    pairs = [one.partition("=") for one in given or []]
    if wrong := [task_id for task_id, _, reason in pairs if not (task_id and reason.strip())]:
        raise InputError(f"{option} {wrong[0]}: give TASK=REASON")
    return {task_id: reason.strip() for task_id, _, reason in pairs}


@release.command(example="release check dataset --no-run")
def check(
    folder: FolderArgument,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Also run every task, with its patch and with none.")
    ] = True,
    images: Annotated[
        bool, typer.Option("--images/--no-images", help="Also read every image from its registry.")
    ] = True,
    note: Annotated[bool, typer.Option("--note", help="Write each task folder's status into the release.")] = False,
    home: Annotated[
        Path | None, typer.Option(help="Where tasks are made.", show_default="cache/release of the default home")
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file with settings.")] = None,
    as_json: Json = False,
) -> Report:
    """Check a release: files, leaks, folders, images; every task passes with its patch and fails without.

    Exit code 0: all is well; 1: a check failed; 3: none failed, and some were not run.
    """
    from perfquarry.curation.release import check as gate
    from perfquarry.curation.release.expert_runs import ExpertRuns
    from perfquarry.curation.release.writing import record
    from perfquarry.flows.options import settings_from

    place = home_of(home) if home else Home(home_of(None).cache / "release")
    chosen, console = settings_from(settings), Console(stderr=as_json)
    runner = ExpertRuns(folder, place, chosen) if run else None
    checks, runs = gate.check(folder, runner, lambda one: show(gate.gold_line(one), console=console), images=images)
    return gate.report(folder, checks, runs, record(folder, runs) if note and runs else {})


@release.command(example="release page dataset")
def page(
    folder: FolderArgument,
    to: Annotated[
        Path | None, typer.Option(help="Folder of the page.", show_default="the release's folder with -page at its end")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Report of `perfquarry evaluate` on this release: best known, discrimination.")
    ] = None,
) -> Report:
    """Write a release as a page to look at: works offline, needs no server and loads nothing from other hosts."""
    from rich.progress import Progress

    from perfquarry.curation.release.site import write_site

    errors = Console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as bar:
        drawn = bar.add_task("pages", total=None)
        site = write_site(folder, to, report, lambda done, pages: bar.update(drawn, completed=done, total=pages))
    size = f"{site.pages} pages, {site.bytes / 2**20:.1f} MiB"
    tasks = f"{site.tasks} task{'' if site.tasks == 1 else 's'}"
    return Report(site, [f"{tasks}, {size}; open it with: {site.folder}/index.html"])


@release.command(example="release upload dataset --to owner/name --dry-run")
def upload(
    folder: FolderArgument,
    to: Annotated[str, typer.Option(help="Repository of the Hub: owner/name.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent; send nothing.")] = False,
    private: Annotated[bool, typer.Option(help="A new repository is private.")] = False,
) -> Report:
    """Upload a release to the Hugging Face Hub (HF_ENDPOINT, HF_TOKEN); run it again to continue."""
    from perfquarry.curation.release.upload import upload as send

    plan = send(folder, to, dry_run=dry_run, private=private)
    lines = [f"{size:>12,}  {name}" for name, size in plan.files.items()]
    lines += [f"{'removed':>12}  {name}" for name in plan.removed]
    total = f"{len(plan.files)} files, {sum(plan.files.values()):,} bytes; {len(plan.unchanged)} are there already"
    done = f"done: {plan.commit} ({plan.tag})" if plan.commit else "nothing was sent"
    return Report(plan, [*lines, total, done])


@release.command(example="release registry dataset --url https://example.org/tasks.git --commit a1b2c3d")
def registry(
    folder: FolderArgument,
    url: Annotated[str, typer.Option(help="Address from which git clones the release.")],
    commit: Annotated[str, typer.Option(help="Commit that holds the task folders.")],
) -> None:
    """Write registry.json for a release in your own git repository; `upload` does so for the Hub."""
    from perfquarry.curation.release.task_folders import write_registry

    print(write_registry(folder, url, commit))


@app.command(example="revalidate dataset")
@with_options("settings", "home")
def revalidate(
    options: Asked,
    source: Annotated[
        str,
        typer.Argument(
            help="Folder of a release, Parquet file of tasks, or a home's repository.", autocompletion=repositories
        ),
    ],
    clone: Clone = None,
    tasks: OnlyTasks = "",
    as_json: Json = False,
) -> Report:
    """Measure published tasks again, here: how many still hold?"""
    from perfquarry.curation.measured_again import revalidate as measure_again

    asked, only = options(repo=""), parts_of("--tasks", tasks or None)
    console = Console(stderr=as_json)
    return measure_again(asked.place, source, clone, only, asked.settings, lambda text: show(text, console=console))
