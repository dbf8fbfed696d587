"""Images of tasks on a real engine: shared layers, one commit of git, and the same image after a journey."""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perfquarry.data.errors import InputError, SandboxUnavailable
from perfquarry.data.home import Home
from perfquarry.data.records import Side
from perfquarry.harness.contracts import BuiltSide, Command, Limits, ProbeRequest
from perfquarry.harness.grading.task_folder import TESTBED
from perfquarry.harness.images.sides import Images, TaskImage, export_image, import_image
from perfquarry.harness.probing.prober import PROBE
from perfquarry.harness.sandbox import choose_sandbox
from perfquarry.harness.sandbox.engine import connected, find_image
from tests.system.hostile.host import visible_folder

pytestmark = pytest.mark.slow  # of what CI runs, tests/harness/sandboxes need Docker
MADE = datetime(2024, 1, 1, tzinfo=UTC)
MODULE = "def double(x): return {}\n"
TEST = "from module import double\ndef test_double(): assert double(2) == 4\n"
# the probe and what is asked of it arrive as arguments, so that nothing of the host is mounted
RUN = """
python=$1; shift
while [ $# -gt 0 ]; do printf %s "$2" >"/tmp/$1"; shift 2; done
"$python" -s /tmp/probe.py /tmp/request.json >&2; cat /tmp/result.jsonl"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with visible_folder() as path:
        yield path


@pytest.fixture(scope="module")
def images(folder: Path) -> Images:
    try:
        choose_sandbox("docker")
    except SandboxUnavailable as error:
        pytest.skip(f"docker does not work here: {error}")
    return Images(Home(folder / "home"))


@pytest.fixture(scope="module")
def sides(folder: Path, bare_python: Path) -> tuple[BuiltSide, BuiltSide]:
    environment = shutil.copytree(bare_python.parents[1], folder / "environment", symlinks=True)

    def side(name: Side, digit: str, body: str) -> BuiltSide:
        tree = folder / "trees" / (digit * 40)
        for path, text in (
            ("module.py", MODULE.format(body)),
            ("test_module.py", TEST),
            (".git/ORIG_HEAD", "b" * 40),
            ("vendored/.git", "gitdir: ../.git/modules/vendored"),
            ("data/ünï code.txt", "kept"),
        ):
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        (tree / "link.py").symlink_to("module.py")
        return BuiltSide(name, digit * 40, tree, environment / "bin" / "python", folder.name, (tree,))

    return side("base", "a", "x + x"), side("head", "b", "2 * x")


@pytest.fixture(scope="module")
def made(images: Images, sides: tuple[BuiltSide, BuiltSide]) -> Iterator[tuple[TaskImage, TaskImage]]:
    base, head = (images.ensure(side, MADE) for side in sides)
    yield base, head
    with connected("remove what the tests made") as api:
        below = [tag for layer in api.history(base.name) for tag in layer["Tags"] or ()]
        for image in (base, head):
            images.remove(image)
        for tag in below:
            if tag.startswith("perfquarry/dependencies:"):
                api.remove_image(tag)


def probe(image: TaskImage, built: BuiltSide) -> dict[str, object]:
    """What the probe reports of the side's test, run in its image with no path of the host."""
    request = ProbeRequest(mode="time", arguments=["test_module.py"], max_calls=3)
    asked = {
        **request.model_dump(mode="json"),
        "tree": TESTBED,
        "source_roots": [TESTBED],
        "result": "/tmp/result.jsonl",
    }
    files = {"request.json": json.dumps(asked)} | {path.name: path.read_text() for path in PROBE.parent.glob("*.py")}
    words = ("/bin/sh", "-c", RUN, "sh", str(built.python), *(word for pair in files.items() for word in pair))
    ended = image.sandbox.run(Command(words, cwd=Path(TESTBED), limits=Limits(wall_seconds=60.0)))
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    items = [line["item"] for line in lines if "item" in line]
    assert len(items) == 1, ended.stderr.decode()
    return dict(items[0])


def test_two_sides_share_all_but_the_last_layer(made: tuple[TaskImage, TaskImage]) -> None:
    base, head = made
    assert len(base.layers) == len(head.layers) == 4
    assert base.layers[:-1] == head.layers[:-1] and base.layers[-1] != head.layers[-1]


def test_a_side_runs_in_its_image_without_the_host(
    made: tuple[TaskImage, TaskImage], sides: tuple[BuiltSide, BuiltSide]
) -> None:
    for image, built in zip(made, sides, strict=True):
        item = probe(image, built)
        assert item["outcome"] == "passed" and item["samples"]


def test_the_tree_is_fresh_and_the_interpreter_bare(
    made: tuple[TaskImage, TaskImage], sides: tuple[BuiltSide, BuiltSide]
) -> None:
    image = made[0]
    script = (
        "find / -xdev -name .git; find .git -name '*HEAD*' -o -name logs; "
        "find . -name .git -prune -o -print | sort; cat link.py data/*; echo; ls -d $1/lib/python*/site-packages"
    )
    prefix = str(Path(sys.base_prefix).resolve())
    ended = image.sandbox.run(Command(("/bin/sh", "-c", script, "sh", prefix), cwd=Path(TESTBED)))
    names = "./data\n./data/ünï code.txt\n./link.py\n./module.py\n./test_module.py\n./vendored\n"
    assert ended.stdout.decode() == f"{TESTBED}/.git\n.git/HEAD\n.\n{names}{MODULE.format('x + x')}kept\n"
    assert b"site-packages" in ended.stderr  # there is none


def test_a_side_in_tmp_is_refused(images: Images, tmp_path: Path, bare_python: Path) -> None:
    with pytest.raises(InputError, match="--home elsewhere"):
        images.ensure(BuiltSide("base", "a" * 40, tmp_path, bare_python, "e", (tmp_path,)), MADE)


def test_layers_are_made_once(images: Images, made: tuple[TaskImage, TaskImage], sides: tuple[BuiltSide, ...]) -> None:
    assert images.ensure(sides[0], MADE) == made[0]


def test_an_image_comes_back_from_a_file(
    images: Images, made: tuple[TaskImage, TaskImage], sides: tuple[BuiltSide, ...], tmp_path: Path
) -> None:
    image, archive = made[1], tmp_path / "image.tar"
    digest = export_image(image.name, archive)
    with tarfile.open(archive) as file:
        assert {"oci-layout", "index.json", "manifest.json"} <= set(file.getnames())
    images.remove(image)
    with connected("look for a removed image") as api:
        assert find_image(api, image.image_id) is None
    with pytest.raises(InputError, match="does not hold"):
        import_image(archive, digest[:-1] + ("0" if digest[-1] != "0" else "1"))
    assert import_image(archive, digest) == image.image_id
    assert probe(image, sides[1])["outcome"] == "passed"
    again = tmp_path / "again.tar"
    assert export_image(image.name, again) == digest
    assert again.read_bytes() == archive.read_bytes()


def test_a_changed_file_is_refused(made: tuple[TaskImage, TaskImage], tmp_path: Path) -> None:
    archive, changed = tmp_path / "image.tar", tmp_path / "changed.tar"
    digest = export_image(made[0].name, archive)
    with tarfile.open(archive) as source, tarfile.open(changed, "w") as target:
        config = json.load(source.extractfile("manifest.json"))[0]["Config"]  # type: ignore[arg-type]
        for info in source:
            data = source.extractfile(info)
            if info.name == config:
                info.size -= 1
            target.addfile(info, data)
    with pytest.raises(InputError, match="is not what its name says"):
        import_image(changed, digest)
    with pytest.raises(InputError, match="does not hold"):
        import_image(Path(__file__), digest)


def test_images_of_others_stay(images: Images, made: tuple[TaskImage, TaskImage], tmp_path: Path) -> None:
    name = "somebody/else:1"
    with connected("make an image of somebody else") as api:
        with tarfile.open(tmp_path / "empty.tar", "w"):
            pass
        api.import_image(str(tmp_path / "empty.tar"), repository="somebody/else", tag="1")
        try:
            with pytest.raises(InputError, match="not an image of perfquarry"):
                images.remove(TaskImage(name, "", (), ()))
            assert find_image(api, name) is not None
        finally:
            api.remove_image(name, force=True)
