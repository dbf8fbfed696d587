"""Names of the product: one class for each name, and nothing that nobody uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("data", "llm", "harness", "miners", "testgen", "curation", "flows")


def sources() -> dict[Path, str]:
    files = [ROOT / "perfquarry" / "api.py", *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))]
    return {path: path.read_text(encoding="utf-8") for path in files if path.parent.name != "history"}


def test_a_class_name_stands_for_one_thing() -> None:
    trees = [ast.parse(text) for text in sources().values()]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1 and not name.startswith("_")] == []


def named(tree: ast.Module) -> Iterator[str]:
    """Functions, classes, methods and arguments, constants of the module, and attributes that are set.

    Decorated ones are left out, as a decorator may hand them to a framework, and fields of classes, which are columns.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list:
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def without_exports(text: str) -> str:
    """A module's code but its imports, and the list of what it exports."""
    tree = ast.parse(text)
    tree.body = [
        node
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    ]
    return ast.unparse(tree)


def test_nothing_has_a_name_that_nobody_uses() -> None:
    texts = sources()
    pages = [path.read_text(encoding="utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.jinja")]
    words = Counter(re.findall(r"\w+", "\n".join([*map(without_exports, texts.values()), *pages])))
    called_by_others = re.compile(
        r"__\w+__|visit_\w+|_take_\w+|_\w+_value"  # by name, ours and that of libraries
        r"|_value_|epilog|flow_run_id|propagate|rich_help_panel"
    )
    unused = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        if not {"migrations", "grader", "probe"} & {*path.parts}
        for name in named(ast.parse(text))
        if words[name] <= 1 and not called_by_others.fullmatch(name)
    ]
    assert unused == []
