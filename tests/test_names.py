"""Names of the product: one class for each name, and nothing that nobody uses."""

from __future__ import annotations

import ast
import re
from collections import Counter
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


def test_every_function_and_class_of_a_module_is_used_in_the_product() -> None:
    """Undecorated ones: a decorator may hand them to a framework."""
    texts = sources()
    words = Counter(word for text in texts.values() for word in re.findall(r"\w+", text))
    unused = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path, text in texts.items()
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.decorator_list and words[node.name] == 1
    ]
    assert [one for one in unused if "/migrations/" not in one and "__getattr__" not in one] == []
