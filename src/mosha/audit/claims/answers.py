"""Many answers of one mechanism as columns: numbers, codes for what is not a number, and the shape of each answer.

Whatever is computed here from an answer is post-processing: it can lose power, never soundness.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Complex, Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answers", "Raised", "code_of"]

WIDEST = 512  # leaves of an answer that are looked at one by one


@dataclass(frozen=True)
class Raised:
    """An error in the place of an answer: what an outsider sees of it is an answer too."""

    kind: str
    message: str


def code_of(text: str) -> int:
    """A stable 64-bit code of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Answers:
    """Answers as columns of equal length.

    Fields:
        values: one row an answer, one column a number in it (float64 or int64); NaN where an answer has none.
        texts: codes of the parts that are not numbers, as many columns as `values`; 0 where there is none.
        shape: one code an answer, of its types, lengths, keys and errors.
        show: the answer of this row in a few words (its original form is kept for that).
    """

    values: NDArray[Any]
    texts: NDArray[np.uint64] | None
    shape: NDArray[np.uint64]
    show: Callable[[int], str]

    def __len__(self) -> int:
        return int(self.shape.shape[0])

    @property
    def width(self) -> int:
        return int(self.values.shape[1])

    def part(self, start: int, stop: int) -> Answers:
        """The answers from row `start` to row `stop`."""
        texts = None if self.texts is None else self.texts[start:stop]
        shown = self.show
        return Answers(self.values[start:stop], texts, self.shape[start:stop], lambda row: shown(row + start))

    @staticmethod
    def of(answers: Sequence[object] | NDArray[np.generic]) -> Answers:
        """Columns of these answers, whatever they are."""
        array = _numeric(answers)
        if array is None:
            return _flatten(answers)
        matrix = array.reshape(array.shape[0], -1)
        return Answers(matrix, None, np.zeros(len(matrix), np.uint64), lambda row: _shorten(array[row]))


def _numeric(answers: Sequence[Any] | NDArray[Any]) -> NDArray[Any] | None:
    """One array of numbers, where all answers have one type and one shape; else None."""
    if isinstance(answers, np.ndarray):
        array = answers
    else:
        first = type(answers[0])
        if first is np.ndarray:
            layout = {(item.shape, item.dtype) if type(item) is np.ndarray else None for item in answers}
            if len(layout) != 1:
                return None
            array = np.stack(list(answers))
        elif first in (bool, int, float, np.float64, np.int64, np.bool_) and all(type(a) is first for a in answers):
            try:
                array = np.array(answers)
            except OverflowError:
                return None
        else:
            return None
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind == "i" or array.dtype in (np.uint8, np.uint16, np.uint32):
        return array.astype(np.int64)
    return array.astype(np.float64) if array.dtype.kind == "f" else None


def _flatten(answers: Iterable[object]) -> Answers:
    kept = list(answers)
    columns = _align(kept) or _collect_leaves(kept)
    return Answers(*columns, lambda row: _shorten(kept[row]))


Columns = tuple[NDArray[np.float64], NDArray[np.uint64] | None, NDArray[np.uint64]]
_NUMBERS = {bool, int, float, np.float64, np.int64, np.bool_}


def _align(kept: list[Any]) -> Columns | None:
    """Columns of flat dictionaries, lists and tuples of numbers, one layout at a time; None where there are others."""
    rows: dict[Any, list[int]] = {}
    for i, answer in enumerate(kept):
        kind = type(answer)
        layout: tuple[Any, Any, tuple[type, ...]]
        if kind is dict:
            layout = (kind, tuple(answer), tuple(map(type, answer.values())))
        elif kind is list or kind is tuple:
            layout = (kind, len(answer), tuple(map(type, answer)))
        else:
            return None
        rows.setdefault(layout, []).append(i)
    if len(rows) > 64 or any(not _NUMBERS.issuperset(types) for _, _, types in rows):
        return None
    width = min(WIDEST, max(len(types) for _, _, types in rows))
    values, shape = np.full((len(kept), width), np.nan), np.zeros(len(kept), np.uint64)
    for (kind, keys, types), places in rows.items():
        shape[places] = code_of(_leaves(dict(zip(keys, types, strict=True)) if kind is dict else kind(types))[0])
        order = sorted(range(len(types)), key=lambda j: repr(keys[j])) if kind is dict else range(len(types))
        taken = [tuple(kept[i].values()) if kind is dict else kept[i] for i in places]
        try:
            block = np.array(taken, dtype=np.float64).reshape(len(places), len(types))
        except OverflowError:
            return None
        values[np.ix_(places, range(min(width, len(types))))] = block[:, list(order)][:, :width]
    return values, None, shape


def _collect_leaves(kept: list[object]) -> Columns:
    rows = [_leaves(answer) for answer in kept]
    width = min(WIDEST, max((len(leaves) for _, leaves in rows), default=0))
    values = np.full((len(rows), width), np.nan)
    texts = np.zeros((len(rows), width), np.uint64)
    shape = np.zeros(len(rows), np.uint64)
    known: dict[str, int] = {}
    for i, (form, leaves) in enumerate(rows):
        shape[i] = known.setdefault(form, code_of(form))
        for j, leaf in enumerate(leaves[:width]):
            if isinstance(leaf, str):
                texts[i, j] = known.setdefault(leaf, code_of(leaf))
            else:
                values[i, j] = leaf
    return values, texts, shape


def _leaves(answer: object) -> tuple[str, list[float | str]]:
    """The form of an answer and its parts, in a fixed order."""
    form: list[str] = []
    leaves: list[float | str] = []
    _walk(answer, form, leaves)
    return " ".join(form), leaves


def _walk(answer: object, form: list[str], leaves: list[float | str]) -> None:
    form.append(type(answer).__name__)
    parts = _parts(answer, form)
    if parts is None:
        leaves.append(_leaf(answer, form))
        return
    for part in parts:
        _walk(part, form, leaves)
    form.append("end")


def _parts(answer: object, form: list[str]) -> Iterable[Any] | None:
    """What an answer is made of; None for a leaf. Keys and lengths belong to its form."""
    parts: Iterable[Any] | None = None
    match answer:
        case str() | bytes() | bytearray():
            pass
        case Raised():
            form.append(f"{answer.kind}: {answer.message}")
            parts = []
        case Mapping():
            items = sorted(answer.items(), key=lambda item: repr(item[0]))
            form.append(repr([key for key, _ in items]))
            parts = [value for _, value in items]
        case np.ndarray():
            form.append(f"{answer.shape} {answer.dtype}")
            parts = answer.ravel().tolist()
        case set() | frozenset():
            form.append(str(len(answer)))
            parts = sorted(answer, key=repr)
        case Sequence():
            form.append(str(len(answer)))
            parts = answer
        case _ if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
            parts = [getattr(answer, f.name) for f in dataclasses.fields(answer) if f.compare]
    return parts


def _leaf(answer: object, form: list[str]) -> float | str:
    if answer is None or isinstance(answer, str | bytes | bytearray):
        return repr(answer)
    if isinstance(answer, bool | np.bool_):
        return float(answer)
    if isinstance(answer, Decimal | Fraction | Integral | Real | np.floating | np.integer):
        try:
            number = float(answer)
        except OverflowError:
            return repr(answer)
        if number != number:  # noqa: PLR0124  (NaN: missing for the columns, part of the form)
            form.append("NaN")
        return number
    if isinstance(answer, Complex):
        return repr(complex(answer))
    return _describe(answer)


def _describe(answer: object) -> str:
    """A text for a foreign object: its own, unless that is only an address in memory."""
    text = repr(answer)
    return type(answer).__name__ if " at 0x" in text else text


def _shorten(answer: object) -> str:
    text = np.array2string(answer, threshold=12) if isinstance(answer, np.ndarray) else repr(answer)
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:77] + "..."
