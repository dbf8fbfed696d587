"""What the program says when there is nothing to do, or it is stopped; names and recipes of the user's own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perfquarry.curation.names import repository_of
from perfquarry.data.demo import build_demo
from perfquarry.data.home import Home
from perfquarry.data.records import Build
from perfquarry.data.registry import Repository, parse
from perfquarry.flows.options import Options
from perfquarry.flows.pipeline import run_stages
from perfquarry.flows.run import Run
from tests.system.commands import command, heed_interrupts

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "source"
    build_demo(folder)
    return folder


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("curate", "EMPTY", "--no-server"), "has no commit"),
        (("curate", "demo", "--no-server", "--changes", ""), "--changes is empty"),
        (("curate", "demo", "--no-server", "--since", "2199-01-01"), "is in the future"),
        (("mine", "demo", "--no-server", "--since", "2020-02-01", "--until", "2020-01-01"), "no change lies between"),
        (("build", "demo", "--no-server"), "run `perfquarry judge demo` first"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    tmp_path: Path, perfquarry: Program, arguments: tuple[str, ...], words: str
) -> None:
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "-q", str(empty)], check=True)
    named = [str(empty) if one == "EMPTY" else one for one in arguments]
    done = perfquarry(tmp_path / "home", *named, code=2)
    assert words in done.stderr and "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_name_of_ones_own_and_its_recipe(tmp_path: Path, demo: Path, perfquarry: Program) -> None:
    home = tmp_path / "home"
    perfquarry(home, "recipe", "of-mine", "--source", str(demo))
    recipe = home / "recipes" / "of-mine.toml"
    assert "# packages = [" in recipe.read_text()
    assert parse("of-mine", recipe.read_text(), "draft", codebase="c") == Repository(name="of-mine", codebase="c")
    assert "is there already" in perfquarry(home, "recipe", "of-mine", "--source", str(demo), code=2).stderr
    recipe.write_text('packages = ["lib"]\nno_such_key = 1\n')
    assert "no_such_key" in perfquarry(home, "build", "of-mine", "--source", str(demo), "--no-server", code=2).stderr


def test_what_a_home_has_cloned_needs_no_source_again(tmp_path: Path, demo: Path, perfquarry: Program) -> None:
    """Nothing but the first command says where a repository of a name of one's own is."""
    home = tmp_path / "home"
    assert "'of-mine' is no repository" in perfquarry(home, "mine", "of-mine", "--no-server", code=2).stderr
    perfquarry(home, "mine", "of-mine", "--source", str(demo), "--no-server")
    again = perfquarry(home, "judge", "of-mine", "--no-server")
    assert "20 kept" in again.stdout and "Traceback" not in again.stderr


def test_a_clone_of_what_the_registry_knows_is_reported(tmp_path: Path, demo: Path, perfquarry: Program) -> None:
    clone = tmp_path / "my clone"
    subprocess.run(["git", "clone", "-q", str(demo), str(clone)], check=True)
    origin = ["git", "-C", str(clone), "remote", "set-url", "origin"]
    said = f"`perfquarry curate flask --source '{clone}'` uses that"
    subprocess.run([*origin, "https://github.com/somebody/else"], check=True)
    assert "the registry knows" not in perfquarry(tmp_path / "first", "mine", str(clone), "--no-server").stdout
    subprocess.run([*origin, "git@github.com:Pallets/flask.git"], check=True)
    assert said in perfquarry(tmp_path / "home", "mine", str(clone), "--no-server").stdout
    again = perfquarry(tmp_path / "home", "mine", str(clone), "--no-server").stdout
    named = perfquarry(tmp_path / "home", "mine", "flask", "--source", str(clone), "--no-server").stdout
    assert said not in again and said not in named


def test_a_limit_is_of_this_run(tmp_path: Path, demo: Path) -> None:
    """Each run takes up the most probable change that is not finished; one that is built is not, for a whole run."""
    options = Options(repo="of-mine", source=str(demo), home=str(tmp_path), jobs=1)
    run = Run(options)
    run_stages(run, ["mine", "judge"])
    first, second, *_ = ranked = run.in_scope()
    for number in (1, 2):
        again = Run(options.model_copy(update={"limit": 1}), ["build"])
        run_stages(again, ["build"])
        built = {row.change_id for row in run.store.records(Build, run.name)}
        assert built == set(ranked[:number])
    whole = Run(options.model_copy(update={"limit": 2}))
    kept = {row.change_id for row in run.store.records(Build, run.name) if row.status == "kept"}
    assert {first, second} & kept
    assert set(whole.in_scope()) == {*[one for one in ranked if one in kept or one not in (first, second)][:2]}
    assert repository_of(Home(tmp_path), "of-mine").name == "of-mine"


def test_a_recipe_comes_before_the_registry(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.recipes.mkdir()
    (home.recipes / "tornado.toml").write_text('packages = ["other"]\nextras = ["test"]\nenvironment = {A = "1"}\n')
    found, registered = repository_of(home, "tornado"), repository_of(Home(tmp_path / "none"), "tornado")
    assert (found.packages, found.extras, found.environment) == (["other"], ["test"], {"A": "1"})
    assert (found.url, found.test_paths) == (registered.url, registered.test_paths)
    assert found.recipe_hash() != registered.recipe_hash()


def test_ctrl_c_says_how_to_go_on(tmp_path: Path, demo: Path) -> None:
    arguments = command(tmp_path / "home", "curate", "demo", "--no-server")
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        start_new_session=True,
        preexec_fn=heed_interrupts,
    )
    mined = tmp_path / "home" / "tables" / "verdicts"
    try:
        while process.poll() is None and not mined.exists():
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        said: tuple[Any, Any] = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert process.returncode == 130
    assert "interrupted: what is done is kept" in said[1] and "Traceback" not in said[1]
    assert said[1].count("ending: what runs is stopped") == 1
