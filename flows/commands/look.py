"""The commands that show what a home holds, and write tasks to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perfquarry.curation import Format, Mode, Network
from perfquarry.data.errors import InputError
from perfquarry.data.home import home_of
from perfquarry.data.output import Report
from perfquarry.flows.commands.shared import HomeFolder, Repo, SomeRepo, TaskId, app
from perfquarry.llm import By


@app.command(example="tasks demo")
def tasks(repo: Repo, home: HomeFolder = None) -> Report:
    """List the accepted tasks of a repository."""
    from perfquarry.curation import facts

    return facts.tasks(home_of(home), repo)


@app.command(example="show perfquarry__demo-23b2933d37")
def show(task_id: TaskId, home: HomeFolder = None) -> Report:
    """Show one task: targets, workloads, timings, and the decision in words."""
    from perfquarry.curation.task_reports import report

    return report(home_of(home), task_id)


@app.command(example="funnel demo")
def funnel(repo: Repo, home: HomeFolder = None) -> Report:
    """Show how many changes each stage kept, and why the rest were rejected."""
    from perfquarry.curation import facts

    return facts.funnel(home_of(home), repo)


@app.command(example="workloads demo")
def workloads(repo: Repo, home: HomeFolder = None) -> Report:
    """Show how many workloads each source gave, and why the rest were rejected."""
    from perfquarry.curation import facts

    return facts.workloads(home_of(home), repo)


@app.command(example="costs numpy --by prompt")
def costs(
    repo: SomeRepo = None,
    by: Annotated[By, typer.Option(help="What to sum up.")] = "stage",
    home: HomeFolder = None,
) -> Report:
    """Show the questions to models, their tokens and USD; without a name, of all repositories."""
    from perfquarry.curation import facts

    return facts.costs(home_of(home), repo, by)


@app.command(example="sampling demo")
def sampling(repo: Repo, home: HomeFolder = None) -> Report:
    """Show how many scripts models wrote in each round, how many were kept, and why the others were not."""
    from perfquarry.curation import facts

    return facts.sampling(home_of(home), repo)


@app.command(example="export demo --to tasks.parquet")
def export(
    repo: Repo,
    to: Annotated[Path, typer.Option(help="Parquet file to write; harbor: a folder.")],
    form: Annotated[Format, typer.Option("--format", help="Which columns; harbor: one folder per task.")] = "native",
    network: Annotated[
        Network | None, typer.Option(help="harbor: no-network, or public where an engine cannot do that.")
    ] = None,
    base_image: Annotated[str, typer.Option("--base", help="harbor: image to build on.")] = "",
    reviews: Annotated[
        Path | None, typer.Option(help="harbor: curators' decisions (Parquet); rejected tasks stay out.")
    ] = None,
    setting: Annotated[
        str,
        typer.Option(
            help="harbor: problem text. oracle: functions to change; realistic: functions that users call; "
            "gso: a script; fuzzy: a user's report.",
            show_default="realistic",
        ),
    ] = "",
    home: HomeFolder = None,
) -> Report:
    """Write the accepted tasks to one Parquet file, or as folders for Harbor."""
    if (network or base_image or reviews or setting) and form != "harbor":
        raise InputError("--network, --base, --reviews and --setting are for --format harbor")
    from perfquarry.curation.formats import export as export_tasks
    from perfquarry.curation.in_force import accepted_tasks
    from perfquarry.curation.names import known
    from perfquarry.curation.problems.texts import WRITTEN

    place, written = home_of(home), setting or "realistic"
    store, name = known(place, repo)
    accepted = accepted_tasks(store, name)
    if form != "harbor":
        rows = export_tasks(accepted, to, form)
        others = f"; {len(accepted) - rows} without unit tests left out" if rows < len(accepted) else ""
        facts = {"file": str(to), "format": form, "rows": rows}
        return Report(facts, [f"{rows} task(s) written to {to}{others}"])
    from perfquarry.curation.release import harbor_folders  # needs the harness, which the other formats do not
    from perfquarry.curation.release.selection import read_reviews

    decisions = read_reviews(reviews) if reviews else {}
    if written not in WRITTEN:
        raise InputError(f"unknown setting {written!r}: give one of {', '.join(WRITTEN)}, such as --setting realistic")
    return harbor_folders.export(place, store, accepted, to, base_image, network or "no-network", decisions, written)


@app.command(example="stability timings.json --mode sweperf")
def stability(
    file: Annotated[Path, typer.Argument(help="JSON {'cases': \\[{'base': \\[s…], 'head': \\[s…]}…]} or Parquet.")],
    mode: Annotated[Mode, typer.Option(help="sweperf: the authors' filter and grid; full: ours.")] = "full",
) -> Report:
    """Apply the stability filters to anybody's timings."""
    from perfquarry.curation.samples import report

    return report(file, mode)


@app.command(example="image perfquarry__demo-23b2933d37 --to task.tar")
def image(
    task_id: TaskId,
    to: Annotated[Path, typer.Option(help="Archive (tar) to write; `docker load` reads it.")],
    base_image: Annotated[str, typer.Option("--base", help="Image to build on.", show_default="our own")] = "",
    home: HomeFolder = None,
) -> Report:
    """Write the container image of a task's base to a file, and note its digest in the task."""
    from perfquarry.curation.names import find_task
    from perfquarry.curation.reopened import reopen
    from perfquarry.data.figures import size
    from perfquarry.harness.images.sides import Images, export_image

    place = home_of(home)
    store, task = find_task(place, task_id)
    if not to.parent.is_dir():
        raise InputError(f"cannot write {to}: there is no folder {to.parent}")
    base, _ = reopen(place, store, task)
    made = Images(place, base_image).ensure(base, task.created_at_commit)
    digest = export_image(made.name, to)
    store.append([task.model_copy(update={"image_digest": digest})])
    written = to.stat().st_size
    facts = {"task_id": task.task_id, "image": made.name, "digest": digest, "file": str(to), "bytes": written}
    said = f"{to}: {size(written)}, {len(made.layers)} layers\n{digest} (noted in the task)"
    return Report({**facts, "layers": made.layers}, [said, f"run it with: docker load -i {to}"])
