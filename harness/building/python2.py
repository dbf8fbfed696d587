"""Whether a failure shows code of Python 2, which no interpreter from 3.6 on runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from perfquarry.data import syntax

OF_PYTHON_2 = 0.1
"""Part of a package's files that can be of Python 2 only, or samples, where all others run as they stand."""
_CONVERTS = re.compile(rb"\b(?:lib2to3|do2to3|use_2to3|build_py_2to3)\b")
_SAID = re.compile(
    r"""Missing\ parentheses\ in\ call\ to\ '(?:print|exec)'
    | multiple\ exception\ types\ must\ be\ parenthesized
    | leading\ zeros\ in\ decimal\ integer
    | TabError:\ inconsistent\ use\ of\ tabs
    """,
    re.VERBOSE,
)
"""What newer interpreters say of it."""
_CODE = re.compile(
    r"""^\s*except\s+[\w.]+\s*,\s*\w+\s*:           # except Error, error:
    | ^\s*except\s*\([^)]*\)\s*,\s*\w+\s*:        # except (One, Other), error:
    | ^\s*raise\s+[\w.]+(?:\[[^\]]*\]|\([^)]*\))*\s*,  # raise Error, "text"
    | ^\s*(?:.*[;:]\s*)?print\s+["'\w%]           # print "text"
    | ^\s*exec\s+[\w"'].*\sin\s
    | (?<![\w"'])[uU][rR]["']
    | (?<![\w.])0[0-7]+(?![\w.])
    | (?<![\w.])(?:0[xX][\da-fA-F]+|\d+)[lL](?!\w)
    | `[^`]+`
    | \s<>\s
    | ^\s*def\s+\w+\((?:[^=]*,)?\s*\(\s*\w+\s*,   # def f(a, (b, c)):
    | (?<!\w)lambda\b(?:[\w\s]*,)*\s*\(\s*\w      # lambda a, (b, c): …
    """,
    re.MULTILINE | re.VERBOSE,
)
_STRING = re.compile(r"""(["'])(?:\\.|(?!\1).)*\1""")
_COMMENT = re.compile(r"#.*")
_BAD_SYNTAX = re.compile(r"(?:Syntax|Tab)Error:")
_NO_LIST = "dict_items|dict_keys|dict_values|filter|map|range|zip"
"""What were lists."""
_NAMES = re.compile(
    r"name '(?:basestring|execfile|long|raw_input|reduce|unichr|unicode|xrange)' is not defined"
    r"|cannot import name '(?:ifilter|ifilterfalse|imap|izip|izip_longest|maketrans)'"
    r"|module 'string' has no attribute '(?:join|letters|lowercase|maketrans|uppercase)'"
    r"|module 'sys' has no attribute '(?:maxint|setdefaultencoding)'"
    r"|unsupported operand type\(s\) for >>: 'builtin_function_or_method'"
    r"|'dict' object has no attribute '(?:has_key|iteritems|iterkeys|itervalues)'"
    rf"|'(?:{_NO_LIST})' object (?:is not subscriptable|does not support item (?:assignment|deletion))"
    rf"|'(?:{_NO_LIST})' object has no attribute '(?:append|extend|insert|pop|remove|reverse|sort)'"
    rf"|object of type '(?:{_NO_LIST})' has no len"
    rf'|can only concatenate list \(not "(?:{_NO_LIST})"\) to list'
    rf"|unsupported operand type\(s\) for \+: '(?:{_NO_LIST})' and"
)
_MODULES = frozenset(
    re.findall(
        r"\w+",
        """BaseHTTPServer Bastion CGIHTTPServer ConfigParser Cookie DocXMLRPCServer HTMLParser MimeWriter Queue
        ScrolledText SimpleHTTPServer SimpleXMLRPCServer SocketServer StringIO Tkinter UserDict UserList UserString
        __builtin__ _winreg anydbm bsddb cPickle cStringIO commands compiler cookielib copy_reg dbhash dircache
        dumbdbm dummy_thread exceptions fpformat future_builtins gdbm hotshot htmlentitydefs htmllib httplib ihooks
        imputil markupbase md5 mhlib mimetools mimify multifile mutex new popen2 posixfile repr rexec rfc822
        robotparser sets sgmllib sha statvfs strop thread tkFileDialog tkMessageBox ttk urllib2 urlparse user whichdb
        xmlrpclib""",
    )
)
_MISSING = re.compile(r"No module named '?([\w.]+)'?")
_FROM = re.compile(r"^ *from (\w+) import .*\n(?:[ ^~]*\n)?ImportError: cannot import name", re.MULTILINE)
_FRAME = re.compile(r'^ *File "([^"]+)", line \d+', re.MULTILINE)
_MARKED = re.compile(r"^E {2,}", re.MULTILINE)
"""How pytest marks the lines of an error."""
_TRACEBACK = "Traceback (most recent call last)"


def made_for_2to3(tree: Path, roots: Sequence[str], packages: Sequence[str]) -> str:
    """Why the package runs only once its setup.py has converted it; empty where it does not convert, or need not.

    Args:
        tree: the checkout.
        roots: its source roots, relative to it.
        packages: their packages and modules.
    """
    setup = tree / "setup.py"
    if not setup.is_file() or not _CONVERTS.search(setup.read_bytes()):
        return ""
    tops = [tree / root / name.partition(".")[0] for root in roots for name in packages]
    files = {path for top in tops for path in (*top.rglob("*.py"), top.with_suffix(".py"))}
    there = [path for path in files if path.is_file() and not path.is_symlink()]
    old = [path for path in there if not _parses(path)]
    if len(old) <= OF_PYTHON_2 * len(there):
        return ""
    return f"setup.py converts the code by lib2to3: {len(old)} of {len(there)} files of the package need that"


def _parses(path: Path) -> bool:
    try:
        syntax.parse(path.read_bytes())
    except syntax.UNPARSABLE:
        return False
    return True


def does_not_parse_since(log: str) -> bool:
    """Whether files that an interpreter does not compile are of Python 2.

    Args:
        log: for each file the error and the line of the source where it is.
    """
    code = _COMMENT.sub("", _STRING.sub(r"\1\1", log))  # neither strings nor comments are code
    return (_SAID.search(log) or _CODE.search(code)) is not None


def fails_at_import_since(log: str, tree: Path) -> bool:
    """Whether the package's own code fails at import for being of Python 2: syntax, names, modules, imports of
    neighbours without a dot. What fails in a dependency says nothing of the package.
    """
    return any(_of_python_2(one, tree) for one in log.split(_TRACEBACK)[1:])


def fails_in_tests_since(text: str) -> bool:
    """Whether what pytest says of a test, or of a file that it cannot collect, shows code of Python 2."""
    text = _MARKED.sub("", text)
    if _BAD_SYNTAX.search(text):
        file = text.rfind('File "')
        return "site-packages" not in text[file:].partition("\n")[0] and does_not_parse_since(text[file:])
    missing = _MISSING.search(text)
    return missing[1].partition(".")[0] in _MODULES if missing else _NAMES.search(text) is not None


def _of_python_2(traceback: str, tree: Path) -> bool:
    frames = _FRAME.findall(traceback)
    if not frames or not Path(frames[-1]).is_relative_to(tree):
        return False
    if _BAD_SYNTAX.search(traceback):
        return does_not_parse_since(traceback[traceback.rindex(frames[-1]) :])
    missing, beside = _MISSING.search(traceback), Path(frames[-1]).parent
    hidden = _FROM.search(traceback)
    if hidden and all((beside / name).is_file() for name in ("__init__.py", f"{hidden[1]}.py")):
        return True  # `from io import …` where the neighbour io.py is meant
    if missing:
        name = missing[1].split(".")[0]
        made = name.startswith("__") and name.endswith("__")  # by the package's own build: none is on any index
        bare = name == missing[1]  # of a dotted name the first part was found
        near = bare and (any(beside.glob(f"{name}.*")) or (beside / name / "__init__.py").is_file())
        return name in _MODULES or made or near
    return _NAMES.search(traceback) is not None
