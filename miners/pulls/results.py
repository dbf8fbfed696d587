"""Measurements that people quote in discussions, as numbers: asv, pyperf, %timeit, tables, prose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from perfquarry.data.records import QuotedResult

_LONGEST = 100_000
"""Characters of a text that are read."""
_MOST = 50
"""Results kept of a text."""
_LINE = 300
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "nsec": 1e-9}
_UNITS |= {"s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0, "m": 60.0}
_NUMBER = r"\d{1,12}(?:,\d{3})*(?:\.\d{1,12})?(?:e[+-]?\d{1,2})?"
_UNIT = r"(?:ns|nsec|us|µs|μs|usec|ms|msec|seconds?|secs?|s|minutes|min|m)\b"
_SPREAD = rf"(?:\s?(?:±|\+-|\+/-)\s?{_NUMBER}\s?(?:{_UNIT})?)?"
_TIME = re.compile(
    rf"(?<![\w.])(?P<number>{_NUMBER})(?:\s?(?:±|\+-|\+/-)\s?{_NUMBER})?\s?(?P<unit>{_UNIT}){_SPREAD}", re.I
)
_ASV = re.compile(
    rf"^[\s|]*[-+!x~]?[\s|]+(?P<before>{_NUMBER}(?:±[\d.]+)?\s?{_UNIT})(?:\s*<[^>]*>)?[\s|]+"
    rf"(?P<after>{_NUMBER}(?:±[\d.]+)?\s?{_UNIT})(?:\s*<[^>]*>)?[\s|]+~?(?P<ratio>\d+(?:\.\d+)?)[\s|]+(?P<name>[^|\s][^|]*?)[\s|]*$"
)
_PYPERF = re.compile(
    rf"(?:(?P<name>[\w.:-]+):\s+)?Mean \+- std dev: \[[^\]]+\] (?P<before>{_NUMBER} {_UNIT})[^\[\]]*-> "
    rf"\[[^\]]+\] (?P<after>{_NUMBER} {_UNIT})"
)
_TIMEIT = re.compile(
    rf"(?P<first>{_NUMBER}\s?(?:{_UNIT}){_SPREAD}) per loop|best of \d+: (?P<best>{_NUMBER}\s?{_UNIT}) per loop"
)
_STATEMENT = re.compile(r"(?:%%?timeit|-m timeit)\s*(?P<code>.*)$")
_ABOUT = r"(?:about |around |~)?"
_ARROW = re.compile(
    rf"(?:(?P<name>[\w.`()\[\] -]{{0,60}}?)[:=]\s*)?(?:from\s+)?{_ABOUT}(?P<before>{_NUMBER}\s?{_UNIT}){_SPREAD}"
    rf"\s*(?:->|=>|→|⟶|\bdown to\b|\bto\b|\bvs\.?|\bversus\b)\s*{_ABOUT}(?P<after>{_NUMBER}\s?{_UNIT})",
    re.I,
)
_FACTOR = re.compile(
    r"(?P<factor>\d{1,6}(?:\.\d+)?)\s?(?:x|×|times)\s(?:faster|speed-?\s?up|quicker|improvement)", re.I
)
_FACTOR_OF = re.compile(r"speed-?up of (?:about |around |~)?(?P<factor>\d{1,6}(?:\.\d+)?)\s?(?:x|×|times)", re.I)
_PERCENT = re.compile(r"(?P<percent>\d{1,2}(?:\.\d+)?)\s?% (?:less time|reduction (?:in|of) (?:run)?time)", re.I)
_BEFORE = re.compile(
    r"\b(?:before|main|master|old|base(?:line)?|without|current(?:ly)?|was|original|upstream|develop)\b", re.I
)
_AFTER = re.compile(
    r"\b(?:after|new|patch(?:ed)?|head|branch|with|this pr|pr|now|proposed|optimi[sz]ed|fast(?:er)?)\b", re.I
)


Numbered = tuple[int, QuotedResult]
"""A result with the number of its line."""


def quoted_results(text: str) -> list[QuotedResult]:
    """The measurements in a text, in its order; at most 50."""
    lines = text[:_LONGEST].replace("\r\n", "\n").split("\n")
    found: dict[int, list[QuotedResult]] = {}
    for read in (_rows, _tables, _timeits, _prose):  # a line that one of them reads is not the next one's
        taken = set(found)
        for number, result in read(lines):
            if number not in taken:
                found.setdefault(number, []).append(result)
    return [result for number in sorted(found) for result in found[number]][:_MOST]


def gains(results: Sequence[QuotedResult], least: float = 1.05) -> list[QuotedResult]:
    """Those that speak of a gain, the largest first."""
    faster = [(one.speedup, one) for one in results if one.speedup is not None and one.speedup >= least]
    return [one for _, one in sorted(faster, key=lambda pair: -pair[0])]


def _rows(lines: Sequence[str]) -> Iterator[Numbered]:
    """Lines that give both sides: asv's and pyperf's comparisons."""
    for number, line in enumerate(lines):
        if asv := _ASV.match(line[:_LINE]):
            yield number, _pair("asv", asv["name"].strip(), asv["before"], asv["after"], line)
        elif pyperf := _PYPERF.search(line[:_LINE]):
            yield number, _pair("pyperf", pyperf["name"] or "", pyperf["before"], pyperf["after"], line)


def _tables(lines: Sequence[str]) -> Iterator[Numbered]:
    """Tables (Markdown's, pyperf's) with a column of before and one of after."""
    columns: tuple[int, int] | None = None
    for number, line in enumerate(lines):
        if line.count("|") < 3:
            columns = columns if set(line.strip()) <= set("+-= ") and line.strip() else None
            continue
        cells = [cell.strip() for cell in line[:_LINE].strip().strip("|").split("|")]
        if columns is None:
            columns = _sides(cells)
        elif len(cells) > max(columns):
            before, after = cells[columns[0]], cells[columns[1]]
            if _TIME.search(before) and _TIME.search(after):
                name = next((cell for at, cell in enumerate(cells) if at not in columns and not _TIME.search(cell)), "")
                yield number, _pair("table", name, before, after, line)


def _sides(header: Sequence[str]) -> tuple[int, int] | None:
    """Places of the columns of before and after; of two unknown columns after a name, the first is before."""
    before = [at for at, cell in enumerate(header) if _BEFORE.search(cell)]
    after = [at for at, cell in enumerate(header) if _AFTER.search(cell) and at not in before[:1]]
    if before and after:
        return before[0], after[0]
    if len(header) >= 3 and header[0].lower().startswith("benchmark"):
        return 1, 2
    return None


def _timeits(lines: Sequence[str]) -> Iterator[Numbered]:
    """Lines of %timeit. The n-th after a word of before and the n-th after a word of after are a pair."""
    side, statement = "", ""
    by_side: dict[str, list[tuple[int, str, str]]] = {"before": [], "after": [], "": []}
    for number, line in enumerate(line[:_LINE] for line in lines):
        if timed := _TIMEIT.search(line):
            by_side[side].append((number, statement, timed["first"] or timed["best"]))
            statement = ""
        elif named := _STATEMENT.search(line):
            statement = named["code"].strip()
        elif len(line) <= 80 and not line.startswith((">>>", "In [")):
            words = {"before": bool(_BEFORE.search(line)), "after": bool(_AFTER.search(line))}
            side = next((name for name in words if words[name] and sum(words.values()) == 1), side)
    pairs = min(len(by_side["before"]), len(by_side["after"]))
    for (_, _, before), (number, code, after) in zip(by_side["before"], by_side["after"], strict=False):
        yield number, _pair("timeit", code, before, after, lines[number])
    rest = [*by_side["before"][pairs:], *by_side["after"][pairs:], *by_side[""]]
    for number, code, time in rest:
        after_seconds = _seconds(time)
        yield (
            number,
            QuotedResult(form="timeit", name=code[:200], after=after_seconds, line=lines[number].strip()[:_LINE]),
        )


def _prose(lines: Sequence[str]) -> Iterator[Numbered]:
    """'from 12 ms to 3 ms', '3x faster', '40 % less time'."""
    for number, line in enumerate(line[:_LINE] for line in lines):
        if arrow := _ARROW.search(line):
            yield number, _pair("prose", (arrow["name"] or "").strip(), arrow["before"], arrow["after"], line)
        elif factor := _FACTOR.search(line) or _FACTOR_OF.search(line):
            yield number, _of_factor(float(factor["factor"]), line)
        elif percent := _PERCENT.search(line):
            yield number, _of_factor(1 / (1 - float(percent["percent"]) / 100), line)


def _of_factor(speedup: float, line: str) -> QuotedResult:
    return QuotedResult(form="prose", speedup=round(speedup, 4) if speedup > 0 else None, line=line.strip())


def _pair(form: Literal["asv", "pyperf", "table", "timeit", "prose"], name: str, *times: str) -> QuotedResult:
    """`times`: before, after, and the line they were read in."""
    before, after = _seconds(times[0]), _seconds(times[1])
    speedup = round(before / after, 4) if before and after else None
    line = times[2].strip()[:_LINE]
    return QuotedResult(form=form, name=name.strip("` ")[:200], before=before, after=after, speedup=speedup, line=line)


def _seconds(text: str) -> float | None:
    found = _TIME.search(text)
    if not found:
        return None
    return float(found["number"].replace(",", "")) * _UNITS[found["unit"].lower()]
