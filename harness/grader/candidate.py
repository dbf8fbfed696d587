"""The three sides: the base, the expert's, and the candidate's, made of the base and of what the solver may change.

Nothing of the solver's folder is run or followed to get there: its regular files are compared, byte
by byte, with the base's. Taken are files below the package's source roots alone. Tests, configuration of tests,
metadata of distributions (they name plugins), compiled files and modules that would stand before those of the
standard library or of the environment stay the base's. Of compiled files those are taken that the harness itself has
built of the solver's sources (`built` in task.json).
"""

import base64
import errno
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile

SKIPPED = frozenset([".git", "__pycache__", ".pytest_cache", ".hypothesis", ".mypy_cache", ".venv", "node_modules"])
COMPILED = re.compile(r"\.(py[co]|so(\.[\d.]+)?|pyd|dll|dylib|o|a|egg|egg-link|pth)($|/)", re.IGNORECASE)
CONFIGURATION = re.compile(
    r"(^|/)(conftest\.py|\.?pytest\.(ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|setup\.py|noxfile\.py|\.coveragerc"
    r"|(site|user)customize(\.py)?|pyvenv\.cfg|[^/]*\.pth)($|/)"
    # what names or makes the settings of Django's tests
    r"|^(Makefile|justfile|\.travis\.yml|\.github)($|/)"
    r"|^(([^/]+/)?test[^/]*/)?(run_?tests\.(py|sh)|manage\.py|quicktest\.py)($|/)",
    re.IGNORECASE,
)
METADATA = re.compile(r"(\.(dist|egg)-info|(^|/)EGG-INFO|(^|/)entry_points\.txt)($|/)", re.IGNORECASE)
LARGEST = 32 * 1024**2
MOST = 5000


def extract(parts, folder):
    """Unpacks an archive of ours, which is text (base64) in several files; the names of what is in it."""
    packed = b""
    for part in parts:
        with open(part, "rb") as file:
            packed += base64.b64decode(file.read())
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        if sys.version_info >= (3, 12):
            tar.extractall(folder, filter="tar")
        else:
            tar.extractall(folder)
        return tar.getnames()


def make_sides(task, here, work):
    """Fills work/base, its copy work/same, work/gold and work/cand; the changed files, and those left out with why."""
    base, gold, cand = (os.path.join(work, name) for name in ("base", "gold", "cand"))
    os.makedirs(base)
    extract([os.path.join(here, part) for part in task["base"]], base)
    compile_trees([base])
    for other in (gold, cand, os.path.join(work, "same")):
        shutil.copytree(base, other, symlinks=True)
    for path in extract([os.path.join(here, part) for part in task["gold"]], gold):
        forget_bytecode(os.path.join(gold, path))
    for path in task["gold_deleted"]:
        os.remove(os.path.join(gold, path))
    changed, left_out = apply_changes(task, base, cand)
    for path in changed:
        forget_bytecode(os.path.join(cand, path))
    compile_trees([gold, cand])
    return changed, left_out


def compile_trees(trees):
    """Makes the bytecode that is missing, since processes on the sides cannot write it.

    Isolated (`-I`): with `-m` alone a `compileall.py` of the folder that the grader was started in would be run.
    """
    command = [sys.executable, "-I", "-S", "-m", "compileall", "-q"]
    subprocess.call(command + trees, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def forget_bytecode(path):
    """Removes what was made of a module's text before: a text of the same length and time would not replace it."""
    folder, name = os.path.split(path)
    cache = os.path.join(folder, "__pycache__")
    for compiled in os.listdir(cache) if os.path.isdir(cache) else ():
        if name.endswith(".py") and compiled.startswith(name[:-2]):
            os.remove(os.path.join(cache, compiled))


def apply_changes(task, base, cand):
    """Puts into `cand` what the solver's folder has otherwise than the base, where that is allowed."""
    testbed = task["testbed"]
    protected = re.compile(task["protected"])
    taken, built = foreign_modules(task["python"]), frozenset(task.get("built", ()))
    ours, theirs = regular_files(base), regular_files(testbed)
    changed, left_out = [], {}
    for path in sorted(set(ours) | set(theirs), key=lambda path: (path in theirs, path)):  # deletions make room
        if path in ours and path in theirs and same(os.path.join(base, path), os.path.join(testbed, path)):
            continue
        why = COMPILED.search(path) and path not in built and "compiled files are made, not taken"
        why = why or refusal(path, path in ours, theirs.get(path), protected, task["source_roots"], taken)
        if not why:
            if len(changed) >= MOST:
                raise ValueError("more than %d files were changed" % MOST)
            try:
                put(os.path.join(testbed, path) if path in theirs else None, cand, path)
                changed.append(path)
            except OSError as error:
                why = "cannot be there: %s" % error.strerror
        if why:
            left_out[path] = why
    return sorted(changed), left_out


def refusal(path, known, size, protected, roots, taken):
    """Why a changed file is not taken over; None when it is."""
    if protected.search(path) or CONFIGURATION.search(path):
        return "tests and their configuration stay the base's"
    if METADATA.search(path):
        return "metadata of distributions stay the base's"
    if size is not None and size > LARGEST:
        return "larger than %d bytes" % LARGEST
    if any(character in path for character in "\0\n\r"):
        return "its name"
    insides = [os.path.relpath(path, root) for root in roots]
    insides = [inside for inside in insides if not inside.startswith(os.pardir)]
    if not insides:
        return "it is no part of the package"
    if not known and any(inside.split(os.sep)[0].split(".")[0] in taken for inside in insides):
        return "would be imported in place of another module"
    return None


def regular_files(folder):
    """Size by path of the regular files below a folder; links are neither files nor followed."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED]
        for name in files:
            path = os.path.join(place, name)
            facts = os.lstat(path)
            if stat.S_ISREG(facts.st_mode):
                found[os.path.relpath(path, folder)] = facts.st_size
    return found


def same(one, other):
    """Whether two files hold the same."""
    if os.path.getsize(one) != os.path.getsize(other):
        return False
    with open(one, "rb") as first, open(other, "rb") as second:
        return first.read() == second.read()


def put(source, tree, path):
    """Copies a file's contents into a tree, or removes what is there where there is no source.

    Raises:
        OSError: it cannot be there; a folder on the way is a link, say, which may lead out of the tree.
    """
    target = place = os.path.join(tree, path)
    while os.path.dirname(place) != tree:
        place = os.path.dirname(place)
        if os.path.islink(place):
            raise OSError(errno.ELOOP, "a link leads there")
    if os.path.lexists(target):
        os.remove(target)
    if source is None:
        try:
            os.removedirs(os.path.dirname(target))
        except OSError:  # there is more in it
            pass
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target, follow_symlinks=False)


def foreign_modules(python):
    """Top-level names of the standard library and of the environment."""
    names = set(getattr(sys, "stdlib_module_names", ())) | set(sys.builtin_module_names)
    folders = [os.path.dirname(os.__file__)]
    libraries = os.path.join(os.path.dirname(os.path.dirname(python)), "lib")
    for version in os.listdir(libraries) if os.path.isdir(libraries) else ():
        folders.append(os.path.join(libraries, version, "site-packages"))
    for folder in folders:
        names.update(name.split(".")[0] for name in os.listdir(folder) if os.path.isdir(folder))
    return names - {""}
