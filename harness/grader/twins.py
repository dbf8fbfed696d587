"""Twins of timed tests that must fail: who calls them passed does not run what it is asked to run.

What a test did is reported by the process that also runs the candidate's code. A twin is the test with a comparison at
its end that no code can fulfil, in a file of a name that is drawn; it lies in the trees of all sides.
"""

import ast
import os
import random

_random = random.SystemRandom()


class Twins(object):
    """Node ids of twins by those of their tests (`nodes`).

    Args:
        tree: a base's tree.
        tests: node ids of tests; those get a twin whose function is found, and is no single line.
    """

    def __init__(self, tree, tests):
        self._files = {}
        self.nodes = {}
        for path in sorted({node.partition("::")[0] for node in tests}):
            mine = [node for node in tests if node.partition("::")[0] == path]
            self._add(tree, path, mine)

    def put(self, tree):
        """Writes their files into a tree."""
        for path, text in self._files.items():
            with open(os.path.join(tree, path), "w", encoding="utf-8") as file:
                file.write(text)

    def _add(self, tree, path, tests):
        try:
            with open(os.path.join(tree, path), encoding="utf-8") as file:
                text = file.read()
            module = ast.parse(text)
        except (OSError, ValueError, SyntaxError):
            return
        number = _random.getrandbits(64)
        folder, name = os.path.split(path)
        twin = os.path.join(folder, "%s_%016x.py" % (name[:-3], number))
        ends = {}
        for node in tests:
            end = end_of(module, text, node.partition("::")[2])
            if end:
                ends[end] = True
                self.nodes[node] = twin + node[len(path) :]
        lines = text.splitlines(True)
        for line, indent in sorted(ends, reverse=True):
            lines.insert(line, "\n%sassert [] == [%d]\n" % (indent, _random.getrandbits(64)))
        if ends:
            self._files[twin] = "".join(lines)


def end_of(module, text, name):
    """Last line and indent of the function that a node id names after its file; None where it is not known."""
    place = module
    for part in name.partition("[")[0].split("::"):
        found = [one for one in place.body if getattr(one, "name", None) == part]
        if not found:
            return None
        place = found[-1]
    end = getattr(place, "end_lineno", None)  # Python 3.8
    if end is None or not hasattr(place, "args") or place.body[0].lineno == place.lineno:
        return None
    first = place.body[0]
    line = text.splitlines()[first.lineno - 1]
    return end, line[: len(line) - len(line.lstrip())]
