"""The source roots of a tree, first among the places of modules. Python 3.6 to 3.14, standard library only."""

import os
import sys


def put_first(roots):
    """Puts them first on sys.path, and adds them to the namespace packages that are there already.

    Distributions of the time before PEP 420 bring `*-nspkg.pth` files: of `zope.event`, one makes the package `zope`
    when the interpreter starts, and `zope` of a tree on sys.path would never be looked for.
    """
    sys.path[:0] = roots
    for name, module in list(sys.modules.items()):
        known = getattr(module, "__dict__", {})
        places = known.get("__path__")
        if known.get("__file__") or not hasattr(places, "append"):
            continue
        for root in roots:
            folder = os.path.join(root, *name.split("."))
            if os.path.isdir(folder) and folder not in places:
                places.append(folder)
