"""Whose row is whose, and how many rows of one unit are kept.

Every rule here looks at one person's rows alone, so that taking a person away changes nothing about what is kept of
anybody else. What it never looks at: the position of a row in the table, the number of other people, codes given
out in order of appearance.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import DataError, InvalidParameter, Unbounded
from mosha.core.unit import Client, Edge, Example, Own, Person, Reading, Row, Unit
from mosha.exact.canonical import canonical_form

__all__ = [
    "count_width",
    "hash_name",
    "identify",
    "keep_at_most",
    "list_entries",
    "read_rows",
    "rows_per_unit",
    "to_array",
    "to_numbers",
]

_ONE_ROW_EACH = (Reading, Edge, Example, Client, Own)


def rows_per_unit(unit: Unit) -> int:
    """How many rows of the data one unit can own, once bounding has been done.

    A `Row` promises its `at_most`, a `Person` has it enforced; of events, edges, examples, clients and one's own
    value the data hold one row each.

    >>> rows_per_unit(Person("patient_id", at_most=5))
    5
    """
    match unit:
        case Row():
            return unit.at_most
        case Person(at_most=int() as rows):
            if unit.groups or unit.per_group or unit.total:
                raise InvalidParameter("exact.only_at_most", parameter="unit")
            return rows
        case Person():
            raise Unbounded("exact.person_without_at_most", parameter="unit", column=unit.column)
    if isinstance(unit, _ONE_ROW_EACH):
        return 1
    raise InvalidParameter("exact.unit_without_rows", parameter="unit", noun=unit.noun)


def read_rows(data: object, unit: Unit, column: str | None, *, any_column: bool = False) -> tuple[Any, Any]:
    """(values, persons) out of what was handed in; `persons` is None unless the unit is a Person.

    Data are an array of values, or columns by name (a dict, a data frame); for a Person a pair
    (persons, values) will do as well. `any_column` is for a statistic that only counts rows.
    """
    persons: Any = None
    if hasattr(data, "keys") and hasattr(data, "__getitem__"):
        names = list(data.keys())
        owner = unit.column if isinstance(unit, Person) else None
        values = data[names[0] if any_column and column is None and names else _find_column(names, owner, column)]
        if owner is not None:
            if owner not in names:
                raise DataError("exact.no_person_column", column=owner)
            persons = data[owner]
    elif isinstance(unit, Person):
        if not isinstance(data, tuple) or len(data) != 2:
            raise DataError("exact.persons_missing")
        persons, values = data
    else:
        values = data
    if persons is not None and len(persons) != len(values):
        raise DataError("exact.lengths_differ")
    return values, persons


def _find_column(names: list[str], owner: str | None, column: str | None) -> str:
    if column is not None:
        if column not in names:
            raise DataError("exact.no_column", column=column)
        return column
    others = [name for name in names if name != owner]
    if len(others) != 1:
        raise DataError("exact.several_columns", parameter="column")
    return others[0]


@np.errstate(all="ignore")
def to_numbers(values: object, *, width: int | None = None) -> NDArray[np.float64]:
    """Values as floats, one for each row or `width` of them; whatever is not a number becomes NaN, one by one.

    It cannot fail or warn on what a row holds, only fail on the declared type and shape of a whole array. What is
    masked is no number.

    >>> to_numbers([1, None, "2.5", "many"]).tolist()
    [1.0, nan, 2.5, nan]
    """
    if np.ma.isMaskedArray(values) and values.dtype.kind in "biuf":
        values = np.ma.filled(values.astype(np.float64), np.nan)
    array = to_array(values)
    if array.ndim > 1 + (width is not None) or array.dtype.kind not in "biufOUS":
        raise DataError("exact.not_numbers")
    if array.dtype.kind in "biuf":
        table = array.astype(np.float64)
    elif width is None:
        table = np.array([_to_number(value) for value in array.tolist()], np.float64)
    else:
        table = np.array([_to_vector(row, width) for row in array.tolist()], np.float64).reshape(-1, width)
    if width is not None and table.size == 0:
        table = table.reshape(0, width)
    if width is not None and (table.ndim != 2 or table.shape[1] != width):
        raise DataError("exact.wrong_width", width=width)
    return table


def count_width(rows: object) -> int:
    """How many numbers each row has: the shape of an array or a frame, which is public; 0 where there is none.

    Of a list it is the width that most of its rows have. A row of another width is no row (`to_numbers`): were it
    refused, the refusal would tell that it is there.

    >>> count_width([[1, 2], [3, 4], [5]]), count_width([1, 2])
    (2, 0)
    """
    if isinstance(rows, list | tuple):
        widths = Counter(len(row) for row in rows if _is_row(row))
        return min(widths, key=lambda width: (-widths[width], width), default=0)
    shape = getattr(rows, "shape", None) or np.shape(rows)  # type: ignore[call-overload]
    return int(shape[1]) if len(shape) == 2 else 0


def _is_row(row: object) -> bool:
    return isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)


def to_array(values: object) -> NDArray[Any]:
    """A column as an array; a list keeps each entry as it is, whatever the other entries are.

    (NumPy would turn [7, "x"] into ["7", "x"]: one person's text would change everybody's type.)
    """
    if np.ma.isMaskedArray(values):
        return _fill_masked(values)
    if isinstance(values, np.ndarray | np.generic):
        return np.atleast_1d(np.asarray(values))
    if hasattr(values, "dtype") or hasattr(values, "to_numpy"):
        return _frame_to_array(values)
    rows = [values] if isinstance(values, str | bytes) or not hasattr(values, "__iter__") else list(values)
    return np.fromiter(rows, object, len(rows))


def _frame_to_array(values: Any) -> NDArray[Any]:
    """A column of a data frame. Whole numbers stay whole where some are missing: floats would merge large ones."""
    array = np.atleast_1d(np.asarray(values))
    kind = str(getattr(values, "type", None) or getattr(values, "dtype", "")).lower()
    if array.dtype.kind != "f" or not kind.startswith(("int", "uint")):
        return array
    found = values.to_pylist() if hasattr(values, "to_pylist") else values.to_list()
    return np.fromiter((entry if isinstance(entry, int) else None for entry in found), object, len(found))


def _fill_masked(values: np.ma.MaskedArray[tuple[int, ...], np.dtype[np.generic]]) -> NDArray[Any]:
    """What is masked is missing, row by row; the type of the result does not depend on whether anything is."""
    array, masked = np.atleast_1d(np.ma.getdata(values)), np.atleast_1d(np.ma.getmaskarray(values))
    if masked.dtype != bool:
        raise DataError("exact.masked_records")
    if array.dtype.kind in "mM":
        return np.where(masked, np.array("NaT", array.dtype), array)
    objects = array.astype(object)
    objects[masked] = None
    return objects


def list_entries(values: object) -> list[Any]:
    """The entries of a column one by one; dates and times stay what they are (NumPy lists nanoseconds as integers)."""
    array = to_array(values)
    if array.ndim != 1:
        raise DataError("exact.not_one_value_per_row")
    return list(array) if array.dtype.kind in "mM" else array.tolist()


def _to_vector(row: object, width: int) -> list[float]:
    try:
        parts = list(row) if isinstance(row, list | tuple | np.ndarray) else []
    except Exception:  # noqa: BLE001  (what a row does when it is read must not be heard)
        parts = []
    return [_to_number(part) for part in parts] if len(parts) == width else [float("nan")] * width


def _to_number(value: Any) -> float:
    try:
        if isinstance(value, np.ndarray | complex | np.complexfloating):
            return float("nan")  # NumPy would warn, or not, by what it holds
        return float(value)
    except OverflowError:
        return _to_infinity(value)
    except Exception:  # noqa: BLE001  (a row's own conversion may raise anything; it must not be heard)
        return float("nan")


def _to_infinity(value: Any) -> float:
    try:
        return float("inf") if value > 0 else float("-inf")
    except Exception:  # noqa: BLE001
        return float("nan")


def keep_at_most(rows: int, persons: object, contributions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which contributions are kept so that nobody has more than `rows`.

    Guarantee:
        What is kept of a person is a function of that person's rows. Rows are ordered by a hash of
        (the person's name, the row, how many equal rows of that person came before), and the first
        `rows` of each person stay. Sorts are stable and keys are made of one person's rows alone, so taking
        others away changes neither the keys nor the order. The hash is public: only fairness rests on it.

    >>> keep_at_most(2, ["ann", "bo", "ann", "ann"], np.array([1, 2, 3, 4])).tolist().count(True)
    3
    """
    codes, names = _code_persons(persons)
    crowded = np.bincount(codes, minlength=names.size)[codes] > rows if codes.size else np.zeros(0, bool)
    keep = ~crowded
    at = np.flatnonzero(crowded)
    if at.size == 0:
        return keep
    code, digest = codes[at], _digest(contributions[at])
    order = np.lexsort((digest, code))
    key = np.empty(at.size, np.uint64)
    key[order] = _mix(_mix(names[code[order]], digest[order]), _rank(code[order], digest[order]))
    order = np.lexsort((key, code))
    keep[at[order]] = _rank(code[order]) < rows
    return keep


def _rank(*keys: NDArray[np.integer]) -> NDArray[np.uint64]:
    """The position of each entry in its run of equal keys."""
    starts = np.zeros(keys[0].size, bool)
    starts[0] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    index = np.arange(starts.size)
    return (index - np.maximum.accumulate(np.where(starts, index, 0))).astype(np.uint64)


def _code_persons(persons: object) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """A code for each row, and for each code a hash of the person's own name."""
    array = to_array(persons)
    if array.dtype.kind in "iu" and array.ndim == 1:
        unique, codes = np.unique(array, return_inverse=True)
        return codes, _mix(unique.astype(np.uint64), np.uint64(0))
    seen: dict[int | str, int] = {}
    codes = np.fromiter((seen.setdefault(identify(p), len(seen)) for p in list_entries(array)), np.intp, array.size)
    return codes, np.array([hash_name(name) for name in seen], np.uint64)


def identify(person: object) -> int | str:
    """What identifies a person, however the column writes it: 7, 7.0, Decimal("7") and np.int64(7) are one person.

    "7" is another one. Rows whose person is missing, or of a type without a canonical form, all belong to one and the
    same person. (A column of integers turns into floats when one entry is missing; that must not reshuffle everybody.)

    >>> identify(7.0), identify(np.str_("ann")) == identify("ann"), identify(object()) == identify(None)
    (7, True, True)
    """
    name = _truth_as_number(canonical_form(person))
    return name if isinstance(name, int) else repr(name)


def _truth_as_number(name: object) -> object:
    """A column of truth values turns into numbers as soon as one entry is missing: True and 1 are one person."""
    if isinstance(name, tuple):
        return tuple(map(_truth_as_number, name))
    return int(name) if isinstance(name, bool) else name


def hash_name(name: int | str) -> np.uint64:
    """A 64-bit hash of what `identify` gave: the same in every run, whoever else is there."""
    if isinstance(name, int) and -(1 << 63) <= name < 1 << 64:
        return np.uint64(_mix(np.array([name & 0xFFFFFFFFFFFFFFFF], np.uint64), np.uint64(0))[0])
    return np.uint64(int.from_bytes(hashlib.blake2b(str(name).encode(), digest_size=8).digest(), "little"))


def _digest(contributions: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A 64-bit hash of each row."""
    columns = contributions.reshape(contributions.shape[0], -1).astype(np.uint64)
    digest = np.zeros(columns.shape[0], np.uint64)
    for column in columns.T:
        digest = _mix(digest, column)
    return digest


def _mix(left: NDArray[np.uint64], right: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """A hash of two 64-bit words (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        word = left * np.uint64(0x9E3779B97F4A7C15) + right + np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(word ^ (word >> np.uint64(31)))
