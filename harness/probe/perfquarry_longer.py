"""Larger arguments of the same shape.

Scripts of replayed calls contain the text of this module. Python 3.6 to 3.14, standard library only.
"""

import re

SEPARATORS = ("\r\n", "\n", "; ", ", ", ";", "&", ",", " ", "/")


def longer(value, times):
    """The value and further copies of it; unique items stay unique, sorted ones sorted, a text keeps its separators."""
    if isinstance(value, str):
        return longer_text(value, times)
    if isinstance(value, (bytes, bytearray)):
        return type(value)(longer_text(value.decode("latin-1"), times).encode("latin-1"))
    if isinstance(value, range):
        return range(value.start, value.start + len(value) * times * value.step, value.step)
    if isinstance(value, dict):
        span, enlarged = span_of(value), value.copy()
        for number in range(1, times):
            enlarged.update((shifted(key, number, span), one) for key, one in value.items())
        return enlarged
    if hasattr(value, "dtype"):
        return value.repeat(times, 0) if (value[1:] >= value[:-1]).all() else type(value)(value.tolist() * times)
    return longer_items(value, times)


def longer_items(value, times):
    """A list, tuple, set, frozenset or deque and further copies of its items."""
    items = list(value)
    span = span_of(items)
    copies = [shifted(item, number, span) for number in range(times) for item in items]
    try:
        if len(set(copies)) != len(copies):
            copies = items * times
        in_order = not isinstance(value, (set, frozenset)) and items == sorted(items)
    except TypeError:  # items that have no hash or order
        in_order = False
    copies = sorted(copies) if in_order else copies
    if type(value).__name__ == "deque":
        return type(value)(copies, value.maxlen)
    return type(value)(copies)


def longer_text(text, times):
    """Copies of a text, with its own separator between them."""
    for separator in SEPARATORS:
        if separator in text[:-1]:
            end = separator if text.endswith(separator) else ""
            return separator.join([text[: len(text) - len(end)]] * times) + end
    return text * times


def stretched(value, times):
    """The text with its longest quoted part, or else its longest word, so many times as long."""
    if isinstance(value, (bytes, bytearray)):
        return type(value)(stretched(value.decode("latin-1"), times).encode("latin-1"))
    quoted = [one.span(1) for one in re.finditer(r'"((?:\\.|[^"\\])+)"', value)]
    spans = quoted or [one.span() for one in re.finditer(r"[^\s,;&:=/]+", value)]
    if not spans:
        return value * times
    start, end = max(spans, key=lambda span: span[1] - span[0])
    return value[:start] + value[start:end] * times + value[end:]


def span_of(items):
    """Range of the numbers in items, tuples and lists in them included."""
    numbers, waiting = [], list(items)
    while waiting:
        one = waiting.pop()
        if isinstance(one, (tuple, list)):
            waiting.extend(one)
        elif isinstance(one, (int, float)):
            numbers.append(one)
    return max(numbers) - min(numbers) + 1 if numbers else 1


def shifted(item, number, span):
    """The item for the first copy (number 0), another one of its kind for further ones."""
    if isinstance(item, bool) or not number:
        return item
    if isinstance(item, (int, float)):
        return item + number * span
    if isinstance(item, str):
        digits = str(number)
        return item + (digits if item.isdigit() else digits.translate(str.maketrans("0123456789", "abcdefghij")))
    if type(item) in (tuple, list):
        return type(item)(shifted(one, number, span) for one in item)
    return item
