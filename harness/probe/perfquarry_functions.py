"""Which functions of the tree frames run, and how those can be called from outside.

Python 3.6 to 3.14, standard library only.
"""

import fnmatch
import inspect
import os
import sys

from perfquarry_describe import home_of

LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
MIXINS = ("_collections_abc", "collections.abc", "collections")  # whose methods belong to the class that inherits them
KINDS = {staticmethod: "static", classmethod: "class", property: "property"}


class Function(object):
    """A function of the tree; `why` says why it cannot be called by its name, if that is so."""

    def __init__(self, name, module="", path=()):
        self.name = name  # path::Class.method
        self.module, self.path, self.kind, self.why = module, path, "", ""
        self.private = False
        self.defaults = {}


class Functions(object):
    """Functions by code; tests are none."""

    def __init__(self, tree, names, test_files):
        self._tree = os.path.realpath(tree)
        self._names = names
        self._test_files = test_files
        self._known = {}
        self._sources = {}

    def of(self, frame):
        """The package's function that a frame runs; None for tests and what is outside of the tree."""
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._describe(frame, code)
        return self._known[code]

    def known(self, code):
        """The function of a code that was seen."""
        return self._known.get(code)

    def source(self, path):
        """The path of a file of the package relative to the tree; None for tests and what is outside."""
        if path not in self._sources:
            inside = os.path.relpath(os.path.realpath(path), self._tree)
            folders, name = inside.split(os.sep)[:-1], os.path.basename(inside)
            tests = name == "conftest.py" or any(fnmatch.fnmatchcase(name, one) for one in self._test_files)
            outside = inside.startswith(os.pardir) or path.startswith("<")
            foreign = outside or tests or not {"test", "tests", "site-packages"}.isdisjoint(folders)
            self._sources[path] = None if foreign else inside.replace(os.sep, "/")
        return self._sources[path]

    def is_own(self, kind):
        """Whether the package defines a class."""
        path = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return bool(path) and self.source(path) is not None

    def _describe(self, frame, code):
        inside = self.source(code.co_filename)
        if inside is None:
            return None
        name = self._names.of(code.co_filename, code.co_firstlineno)
        if name is None:
            function = Function(inside + "::" + code.co_name)
            function.why = "it has no name of its own"
            return function
        path = tuple(name.partition("::")[2].split("."))
        function = Function(name.replace(os.sep, "/"), frame.f_globals.get("__name__", ""), path)
        if code.co_flags & LAZY:
            function.why = "it is a generator or coroutine"
        elif path[-1] == "__new__":
            function.why = "it makes instances that are not initialised"
        else:
            self._resolve(function, code)
        return function

    def _resolve(self, function, code):
        """Fills in how to call it, or why it cannot be called by its name."""
        owner, held = None, sys.modules.get(function.module)
        for part in function.path:
            owner, held = held, vars(held).get(part) if hasattr(held, "__dict__") else None
        top = getattr(sys.modules.get(function.module), function.path[0], None)
        home = home_of(top, function.path[0]) if top is not None else None
        function.private = home is None or any(map(is_private, function.path))
        function.module = home or function.module
        function.kind = KINDS.get(type(held), "method" if isinstance(owner, type) else "function")
        if function.path[-1] == "__init__":
            function.kind = "init"
        inner = held.fget if isinstance(held, property) else getattr(held, "__func__", held)
        while getattr(inner, "__code__", None) is not code and hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        if getattr(inner, "__code__", None) is not code:
            function.why = "it cannot be called by its name"
        else:
            names, values = code.co_varnames[: code.co_argcount], inner.__defaults__ or ()
            function.defaults = dict(zip(names[len(names) - len(values) :], values), **(inner.__kwdefaults__ or {}))


def is_mixin(frame):
    """Whether a frame runs a method that a collection inherits from the standard library."""
    return frame.f_globals.get("__name__") in MIXINS


def is_private(name):
    """Whether a name begins with an underscore and is no special one."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def first_of(frame):
    """The first argument of a call; None without any."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


def arguments_of(frame, function):
    """Positional and named arguments of a call that begins, without trailing ones that are the defaults."""
    code, values = frame.f_code, frame.f_locals
    names, defaults = code.co_varnames, function.defaults if function is not None else {}
    count, place = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    positional = [values[name] for name in names[:count]]
    named = {name: values[name] for name in names[count:place]}
    named = {name: one for name, one in named.items() if name not in defaults or one is not defaults[name]}
    more = ()
    if code.co_flags & inspect.CO_VARARGS:
        more = values[names[place]]
        place += 1
    while not more and count and names[count - 1] in defaults and positional[-1] is defaults[names[count - 1]]:
        count -= 1
        positional.pop()
    if code.co_flags & inspect.CO_VARKEYWORDS:
        named.update(values[names[place]])
    return positional + list(more), named
