"""Numbers as pages write them: as many digits as their error bars support.

A promise is never said smaller than it is, and what is left never larger; what a float adds to a number (a part in
10^8 and less) is no promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

__all__ = [
    "find_factor",
    "percent",
    "write_above",
    "write_at_least",
    "write_at_most",
    "write_column",
    "write_name",
    "write_plainly",
]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LARGE, _SMALL = 1e12, 1e-4  # beyond them a number with an error bar is written with a power of ten


def write_plainly(value: object, bar: float | None = None) -> str:
    """A number with as many digits as its error bar supports, or three; other values as they are.

    >>> write_plainly(1234.5678, 20.0), write_plainly(0.100000001), write_plainly(1e-6), write_plainly(-0.3, 20.0)
    ('1,235', '0.1', '10⁻⁶', '0')
    >>> write_plainly(48_217.3, 1_630.0), write_plainly(2.2824e14, 1.6e13), write_plainly(3.0084e-7, 8.4e-10)
    ('48,200', '2.28×10¹⁴', '3.0084×10⁻⁷')
    """
    if value is None:
        return "–"  # noqa: RUF001
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    text = _write_size(abs(value), bar)
    return f"−{text}" if value < 0 and text.strip("0.,") else text  # noqa: RUF001  (a minus as wide as the figures)


def write_at_most(value: object) -> str:
    """Three digits of a promise or a payment, rounded up.

    >>> write_at_most(0.2501), write_at_most(0.1 + 0.2), write_at_most(1.001e-6), write_at_most(3)
    ('0.251', '0.3', '1.01×10⁻⁶', '3')
    """
    return write_plainly(_round(value, math.ceil))


def write_at_least(value: object) -> str:
    """Three digits of what is left, rounded down.

    >>> write_at_least(0.2499), write_at_least(0.7 - 0.6), write_at_least(0.0)
    ('0.249', '0.1', '0')
    """
    return write_plainly(_round(value, math.floor))


def _round(value: object, towards: Callable[[float], int], digits: int | None = None) -> object:
    """To a number of places behind the point, or to three digits in all; other values as they are."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value or not math.isfinite(value):
        return value
    places = 2 - math.floor(math.log10(abs(value))) if digits is None else digits
    many = value * 10.0**places if places < 300 else value * 1e300 * 10.0 ** (places - 300)
    whole = round(many) if abs(many - round(many)) < 1e-8 * abs(many) else towards(many)
    return float(f"{whole}e{-places}")


def _write_size(size: float, bar: float | None) -> str:
    """A number that is not negative."""
    if not math.isfinite(size):
        return "∞"
    if bar is not None and math.isfinite(bar) and bar > 0:
        return _write_with_bar(size, bar)
    if size and (size < 1e-3 or size >= 1e9):
        return _write_power(size)
    digits = max(0, 2 - math.floor(math.log10(size))) if size else 0
    text = f"{size:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _write_with_bar(size: float, bar: float) -> str:
    """As many digits as leave two of the bar."""
    digits = 1 - math.floor(math.log10(bar))
    rounded = round(size, min(digits, 300))
    if rounded and not _SMALL <= max(size, bar) < _LARGE:
        power = math.floor(math.log10(rounded))
        return _write_power(rounded, max(0, power + digits))
    return f"{rounded:,.{max(0, min(digits, 12))}f}"


def write_column(values: Sequence[float | None], up: bool = False) -> list[str]:  # noqa: FBT001, FBT002
    """Numbers that stand below each other, with their points below each other too; promises are rounded up.

    >>> write_column([0.4, 1, 0.55]), write_column([5.99, 138, None]), write_column([1e-5, 2])
    (['0.40', '1.00', '0.55'], ['6.0', '138.0', '–'], ['10⁻⁵', '2'])
    >>> write_column([138.21, 1], up=True)
    ['139', '1']
    """
    plain = [write_at_most(value) if up else write_plainly(value) for value in values]
    sizes = [abs(value) for value in values if value]
    if not sizes or not all(math.isfinite(size) and size < 1e9 for size in sizes):
        return plain
    most = 4 if max(sizes) < 1 else max(0, 2 - math.floor(math.log10(max(sizes)) / 2))
    digits = min(most, max(len(text.partition(".")[2]) for text in plain))
    if min(sizes) < 10.0**-digits:
        return plain
    said = [_round(value, math.ceil, digits) for value in values] if up else values
    shown = (text if value is None else f"{value:z,.{digits}f}" for value, text in zip(said, plain, strict=True))
    return [text.replace("-", "−") for text in shown]  # noqa: RUF001  (a minus as wide as the figures)


def _write_power(value: float, places: int | None = None) -> str:
    """A very small or very large number, such as 10⁻⁶: it is never broken over two lines."""
    digits, _, power = f"{value:.{2 if places is None else min(places, 16)}e}".partition("e")
    digits = digits.rstrip("0").rstrip(".") if places is None else digits
    raised = "10" + str(int(power)).translate(_RAISED)
    return raised if digits == "1" else f"{digits}×{raised}"  # noqa: RUF001


def write_name(value: object) -> str:
    """What names a group: a year or a number of a ward is no amount.

    >>> write_name(2026), write_name(0.25), write_name("surgery")
    ('2026', '0.25', 'surgery')
    """
    return str(value) if isinstance(value, int) else write_plainly(value)


def find_factor(epsilon: float) -> float:
    """By which factor an epsilon lets the odds change; infinite where no float holds it."""
    return math.exp(epsilon) if epsilon < 700 else math.inf


def write_above(factor: float) -> str:
    """A factor of the odds, which is a bound: three digits of what is above one, rounded up.

    >>> write_above(find_factor(0.001)), write_above(find_factor(0.4)), write_above(find_factor(3)), write_above(1e30)
    ('1.00101', '1.492', '20.1', '10³⁰')
    """
    if not math.isfinite(factor):
        return "∞"
    if factor <= 1:
        return "1"
    size = math.floor(math.log10(factor - 1))
    if factor >= 1e9:
        return _write_power(math.ceil(factor / 10.0 ** (size - 2) - 1e-9) * 10.0 ** (size - 2))
    digits = 2 - size
    step = 10.0**digits
    return f"{math.ceil(factor * step) / step:,.{max(0, digits)}f}"


def percent(share: float) -> str:
    """A share of one as a percentage, rounded up: most of them are bounds.

    >>> percent(0.0267), percent(0.99995), percent(0.12301), percent(0.999999)
    ('2.67%', '99.995%', '12.4%', '100%')
    """
    digits = 3 if share > 0.9995 else 2 if share < 0.1 or share > 0.99 else 1
    text = f"{_round(share * 100, math.ceil, digits):.{digits}f}"
    return f"{text.rstrip('0').rstrip('.')}%"
