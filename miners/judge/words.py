"""Signals in what a change says about itself: title, message, branch name and added comments.

Phrases in which a word of speed means something else (`NOT_SPEED`) are taken out before
anything is looked for, so "no performance impact" or "speed up the tests" say nothing.
The expressions are linear (bounded gaps, no nested repetition) and run on lower-case text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perfquarry.miners.judge.finding import JudgeFinding, quote

TITLE_LIMIT = 300
BODY_LIMIT = 4_000
"""Characters that are searched; what a change is about stands at the front."""

_SPEED = (
    r"perf\w*|faster|fast|slow\w*|speed\w*(?:[- ]ups?)?|overhead|optimi[sz]\w*|quicker|cach(?:e|es|ing)|parallel\w*"
)
_ELSEWHERE = (
    r"tests?|test[-_ ]?suite|testing|unittests?|ci|travis\w*|builds?|building|appveyor|azure|github|actions?|workflows?"
    r"|docs?|documentation|docstrings?|doctests?|marker|mark|decorator|compilation|warnings?|tips?|guide|page|section|notes?"
    r"|examples?|lint\w*|mypy|typing|wheels?|releases?|jobs?|pipelines?|tox|installs?|collection|demo|plots?|tracking"
    r"|monitoring|dashboard|badge|plan|label|website|fuzz\w*|counters?|benchmarks?"
)
NOT_SPEED = re.compile(
    rf"""\b(?:
      (?:no|not|without|zero|nor|never|isn't|wasn't|aren't)\s(?:[\w'-]+\s){{0,2}}(?:{_SPEED})
        (?:\s(?:impact|cost|penalty|regression|loss|change|difference|hit|effect)s?)?\b
    | (?:{_SPEED})(?:\s(?:of|the|our|some|all|up|for|a|in|down|running|very|pip|more|few|unit|integration|long)){{0,4}}
        \s(?:{_ELSEWHERE})\b
    | (?:tests?|ci|build|doctests?|docs|demo|test\ssuite|testing)\s
        (?:(?:run|runs|is|are|much|a\sbit|suite|more)\s){{0,2}}(?:faster|slow|slower|speed\w*|quicker|fast|too\slong)\b
    | fast(?:[- ]?forward\w*|[- ]?api|[- ]?ai|[- ]?import|[- ]?fail\w*|mail|[- ]?track\w*|[- ]?parquet|a\b|cgi)
    | (?:fail|break|stead)[- ]?fast
    | optimi[sz]e\simports?
    | (?:scipy[.\s/])?optimize\s?[.:/_]\s?\w*
    | optimi[sz](?:ation|ing|er|ers)[/.]\w+
    | (?:in|of|to|the|for)\s`{{0,2}}(?:scipy\.)?optimize\b(?!\sthe)
    | speed\sof\s(?:sound|light)
    | wind\sspeed
    | perform(?:s|ed|ing)?\b
    | -o{{1,2}}\b
    | cache[- ]?(?:control|busting|key\serror|invalidation|header)\w*
    | (?:pip|ccache|apt|http|browser|nginx|redis|memcache\w*)\s?cach(?:e|ing)
    | memory\s?(?:error|leak)\w*
    | time\s?(?:zone|stamp|delta|out)\w*
    )""",
    re.VERBOSE,
)

STRONG = re.compile(
    r"""\b(?:
      perf | performance | performant | faster | fastest | speed(?:s|ed|ing)? | speed-?ups? | speedier | quicker
    | slow(?:er|est|ness|down|s)? | optimi[sz](?:e|es|ed|ing|ation|ations) | micro-?optimi\w+ | accelerat\w+
    | quadratic\w* | (?:exponential|linear|constant)\stime | overhead | latency | throughput | vectori[sz]\w+
    | efficien(?:t|cy|tly) | inefficien\w+ | bottlenecks? | profil(?:er|ing) | hot[- ]?(?:path|loop|spot)s?
    | fast(?:er)?[-_ ]?paths? | short-?\s?cuts? | simd | avx\w* | sse\d? | neon | svml? | unroll\w* | memoi[sz]\w+
    | scalab\w+ | cheaper | expensive | costly | time-?\s?consuming | preallocat\w+ | pre-?comput\w+ | cythoni[sz]\w+
    | backtracking
    )\b | \bo\([^)\n]{1,20}\)""",
    re.VERBOSE,
)
SAVING = re.compile(
    r"""\b(?:
      cach(?:e|es|ed|ing) | avoid(?:s|ed|ing)? | laz(?:y|ily) | unnecessar(?:y|ily) | redundant | unneeded
    | needless(?:ly)? | reus(?:e|es|ed|ing) | cop(?:y|ies|ying) | allocat\w+ | memory | fast | quick(?:ly)?
    | inlin(?:e|es|ed|ing) | nogil | gil | cython | slots | __slots__ | short-?circuit\w* | early\s(?:exit|return|out)
    | on\sdemand | defer(?:s|red|ring)? | postpon\w+ | only\sonce | repeated(?:ly)? | each\stime | every\s(?:time|call)
    | twice | in-?place | cheap | wast(?:e|es|ed|eful) | lightweight | tun(?:e|ed|ing) | batch\w* | bulk
    | buffer(?:s|ed|ing)? | parallel\w* | hash(?:es|ed|ing)? | lookups? | fewer | memoryview | precompile\w* | compiled
    | hoist\w* | delay(?:s|ed|ing)? | bisect | heapq? | deque | generators? | iterators? | frozenset | constants?
    )\b""",
    re.VERBOSE,
)
HINT = re.compile(
    r"""\b(?:
      once | loops? | instead | rather\sthan | simplif\w+ | reduc(?:e|es|ed|ing) | minimi[sz]\w+ | improve[sd]?
    | algorithm | less | directly | better | only\s(?:when|if|compute|do|call|create) | use | using | rewrite | times?
    | large | big | skip(?:s|ped)? | don't | table | sets? | dict | itertools | numpy | locals?
    )\b""",
    re.VERBOSE,
)
NUMBERS = re.compile(
    r"""\b\d+(?:\.\d+)?\s?(?:x|×|times|%|percent)\s(?:faster|speed\w*|quicker|improve\w*|better|less|slower|reduction|gain)
    | \b(?:by|of|about|over|around|from|than)\s~?\d+(?:\.\d+)?\s?(?:%|x\b|×)
    | \b\d+(?:\.\d+)?\s?(?:ns|us|µs|μs|usec|msec|ms|s|sec|secs|seconds|minutes)\b[^\n]{0,40}
      (?:->|=>|→|\bto\b|\bvs\b|\bversus\b|\bper\sloop\b|\binstead\b)
    | \b(?:per\sloop|best\sof\s\d|timeit|usec\sper|asv\b|req/s\b)""",
    re.VERBOSE,
)
AGAINST = re.compile(
    r"""\b(?:fix(?:e[sd]|ing)? | bugs? | bugfix | crash\w* | errors? | regression | wrong | incorrect\w* | security
    | cve | segfault | leak\w* | raises? | exception | ensure[sd]? | handl(?:e|es|ed|ing) | correct(?:ly)? | warnings?
    | respect | validat\w+ | check(?:s|ed|ing)? )\b""",
    re.VERBOSE,
)
CHORE = re.compile(
    r"""\b(?:version | release | bump\w* | changelog | lint\w* | pep-?8 | flake8 | black | ruff | isort | mypy
    | typ(?:e|ing)\s(?:hint|annot)\w* | annotat\w+ | docs? | docstrings? | document\w* | deprecat\w+ | format(?:ting)?
    | style | clean\s?up | rename[sd]? | pyupgrade | python\s?[23] | py3k? | compat\w* | tests? | tst | doc | typ | bld
    | rel | ci | copyright | licen[cs]e | codespell | unused | typos? | dead | readability | coverage | review )\b""",
    re.VERBOSE,
)
FEATURE = re.compile(
    r"""\b(?:add(?:s|ed|ing)? | support(?:s|ed|ing)? | new | implement(?:s|ed|ing|ation)? | allow(?:s|ed|ing)?
    | introduc\w+ | enable[sd]? | api | feature | extend | option | parameter | argument )\b""",
    re.VERBOSE,
)
PREFIX = re.compile(
    r"^\s*\[?(?:perf|performance|speed|opt|optimi[sz]ation)\]?\s?[:(\]/|]"
    r"|^\s*(?:enh|maint|bug|perf)[:,/]\s?(?:perf|speed|optimi[sz]|faster|vectori[sz])"
)
SYNC = re.compile(
    r"^merge (?:remote-tracking )?branch\W+(?:[\w.-]+/)?(?:master|main|trunk|develop|maintenance|v?\d[\w.]*)\b"
    r"|^merged? (?:with|from|in|commit)\b|^merge\.?$"
)
# what makes a thing slower, said in a title; what also speaks of a gain is none of these
_SLOWER = re.compile(
    r"^\W*(?:[\w ]{1,20}:\s)?(?:(?:mak|slow|turn|render|get)\w*|made|got|introduc\w+|add\w*)\b[^\n]{0,80}"
    r"\bslow(?:er|ness|downs?|(?:ed)?\sdown)\b|^\W*slow(?:s|ed|ing)?\s(?:down|every\w*|it|things|the)\b"
)
_GAIN = re.compile(
    r"\b(?:fast(?:er)?|speed\w*|quick\w*|avoid\w*|fix\w*|less|not?|n't|never|without|reduc\w+|remov\w+|optimi[sz]\w*|perf\w*"
    r"|improv\w+|prevent\w*|revert\w*|workaround|was|were|tests?|mark\w*|skip\w*|warn\w*)\b|n't\b"
)
_MARK = re.compile(r"^\W*[\w ]{1,20}:")
_BRANCH = re.compile(r"^merge (?:pull request #\d+ from|branch) (\S+)")
_TRAILER = re.compile(
    r"^\s*(?:signed-off-by|co-authored-by|reviewed-by|git-svn-id|change-id|--hg--|\(?cherry picked)[^\n]*|https?://\S+",
    re.M,
)


def prepare(title: str, message: str) -> tuple[str, str]:
    """Title and body as they are searched: bounded, lower-case, without trailers and links, branch names as words.

    The first line of the body of a merge is its pull request's title, so it takes the title's place.
    """
    body = message[len(title) :] if message.startswith(title) else message
    title, body = title[:TITLE_LIMIT].lower(), _TRAILER.sub(" ", body[:BODY_LIMIT].lower()).strip()
    merge = _BRANCH.match(title)
    if merge:
        branch = re.sub(r"[-_/'\"]+", " ", merge.group(1).partition("/")[2] or merge.group(1))
        first, _, body = body.partition("\n")
        title = f"{first[:TITLE_LIMIT].strip()} · {branch}"
    return title, body


def rank(title: str, message: str) -> int:
    """How early a change is to be read where there is no time for all: 0 where its title speaks of speed, 1 where
    its body does or its title of saving, 2 where nothing does.
    """
    head, body = (NOT_SPEED.sub(" · ", said) for said in prepare(title, message))
    if STRONG.search(head):
        return 0
    return 1 if SAVING.search(head) or STRONG.search(body) else 2


def find(title: str, message: str, comments: str) -> Iterator[JudgeFinding]:
    """What the words say; `comments` are the comment lines the change adds."""
    said, rest = prepare(title, message)
    head, body = NOT_SPEED.sub(" · ", said), NOT_SPEED.sub(" · ", rest)
    if SYNC.match(title[:TITLE_LIMIT].lower()):
        yield JudgeFinding("sync", 1.0, title[:80])
    if head != said and STRONG.search(said) and not STRONG.search(head):
        yield JudgeFinding("speed_elsewhere", 1.0, said[:80])
    if _SLOWER.search(head) and not _GAIN.search(_MARK.sub("", head)):
        yield JudgeFinding("slowdown", 1.0, said[:80])
        return  # the words of speed say how much is lost
    if prefix := PREFIX.search(head):
        yield JudgeFinding("perf_prefix", 1.0, prefix.group(0).strip())
    for name, pattern, text, full in (
        ("title_speed", STRONG, head, 2),
        ("body_speed", STRONG, body, 3),
        ("title_saving", SAVING, head, 2),
        ("body_saving", SAVING, body, 4),
        ("title_hint", HINT, head, 2),
        ("measured", NUMBERS, f"{head}\n{body}", 2),
        ("title_fix", AGAINST, head, 1),
        ("title_chore", CHORE, head, 1),
        ("title_feature", FEATURE, head, 1),
        ("comment_speed", STRONG, NOT_SPEED.sub(" · ", comments[:BODY_LIMIT].lower()), 2),
    ):
        yield from _count(name, pattern, text, full)


def _count(name: str, pattern: re.Pattern[str], text: str, full: int) -> Iterator[JudgeFinding]:
    """A finding whose value grows from 0 to 1 with the number of different words, `full` of them being enough."""
    words: dict[str, int] = {}
    for match in pattern.finditer(text):
        words.setdefault(match.group(0), match.start())
        if len(words) == full:
            break
    if words:
        yield JudgeFinding(name, len(words) / full, quote(text, next(iter(words.values()))))
