"""What comes back: a small table of noisy numbers, with error bars, a receipt and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mosha.core.canvas import draw_as_asked
from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, current_language, phrase, say, translate
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.names.extras import load_guest
from mosha.core.number import strict_probability
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.tables.parts.key_values import to_plain
from mosha.tables.parts.rounding import round_columns
from mosha.tables.showing import make_answer_card, summarize_answer

__all__ = ["Answer"]

ONE_AXIS = 30
"""Numbers that differ by no more than this factor are drawn beside each other."""


@explain_wrong_calls
@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Shown):
    """A table of noisy aggregates: publish it, filter it, plot it, as often as you like.

    Counts are whole, and other numbers have two digits of their error bar: more would be noise. `exact` has them all.

    Made by a release: `keys` name the columns of groups, `rows` are the groups, `columns` the noisy numbers, `errors`
    gives their bars at a confidence, `whole` names those that are counts, `in_rows` those whose bars are in rows,
    `notes` say what to know, `receipt` what was paid; `public` answers cost nothing.

    `kept` are the places of the rows that are shown, in order (None: all); `all_digits`, `rounded`, `estimated` and
    `groupings` are described where they stand.

    Guarantee:
        Everything here is post-processing of what was paid for.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
    >>> visits = mosha.protect({"ward": ["a", "b", "a"]}, unit=mosha.Row(), account=account)
    >>> answer = visits.group_by("ward", keys=["a", "b"]).count().release(epsilon=1)
    >>> answer.keys, answer.rows, list(answer.columns)
    (('ward',), (('a',), ('b',)), ['count'])
    """

    keys: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    columns: Mapping[str, Any]
    receipt: Receipt
    notes: tuple[str, ...] = ()
    errors: Callable[[float], Mapping[str, Any]] = field(repr=False)
    kept: tuple[int, ...] | None = None
    in_rows: tuple[str, ...] = ()
    """The aggregates whose error bar is a number of rows, not of their own unit: quantiles."""
    whole: tuple[str, ...] = ()
    """The aggregates that count something: they are whole numbers."""
    all_digits: bool = False
    """Whether numbers keep the digits that their error bars do not support."""
    rounded: Mapping[str, Any] | None = field(default=None, repr=False)
    """Columns that were rounded together, so that totals are the sums of their parts."""
    estimated: tuple[str, ...] = ()
    """The aggregates whose bars hold, beside the noise, an estimate of what a bound cuts that was bought. No confidence
    can be stated for that part: one person may have any number of rows."""
    groupings: Callable[[tuple[int, ...], float], Mapping[str, Any]] | None = field(default=None, repr=False)
    """Where the noise was planned for groupings: the bars of sums over the keys that one leaves out, by the places of
    those that it keeps. Elsewhere bars of sums follow from those of the groups."""
    public: bool = False
    """Whether nothing is noisy, because all that was read is public."""

    def __repr__(self) -> str:
        return summarize_answer(self)

    def make_card(self) -> Card:
        return make_answer_card(self)

    @property
    def _places(self) -> tuple[int, ...]:
        return tuple(range(len(self.rows))) if self.kept is None else self.kept

    @property
    def exact(self) -> Answer:
        """The same answer with all digits of the noisy numbers, for computing on: `answer.exact.value`."""
        return replace(self, all_digits=True)

    @cached_property
    def _numbers(self) -> Mapping[str, Any]:
        """The columns as they are told."""
        if self.all_digits:
            return self.columns
        if self.rounded is not None:
            return self.rounded
        return round_columns(self.columns, self.errors, whole=self.whole, in_rows=self.in_rows)

    @property
    def table(self) -> dict[str, list[Any]]:
        """The answer as columns: the keys first, then the aggregates."""
        places = list(self._places)
        table = {name: [self.rows[p][i] for p in places] for i, name in enumerate(self.keys)}
        return table | {name: np.asarray(column)[places].tolist() for name, column in self._numbers.items()}

    def __getitem__(self, name: str) -> list[Any]:
        """One column of the table: `answer["count"]`."""
        if name not in self.table:
            raise InvalidParameter("tables.answer_no_column", column=name, columns=list(self.table))
        return self.table[name]

    def error(self, confidence: float = 0.95) -> dict[str, list[Any]]:
        """The table with the half-width of each error bar in place of each number.

        Args:
            confidence: how often the noise stays within the bar; bars of `estimated` aggregates are wider than that.
        """
        bars = self.errors(strict_probability("confidence", confidence))
        places = list(self._places)
        table = {name: self.table[name] for name in self.keys}
        return table | {name: np.asarray(bar)[places].tolist() for name, bar in bars.items()}

    @property
    def value(self) -> Any:
        """The number, where the answer is a single one."""
        if len(self._places) != 1 or len(self.columns) != 1:
            raise InvalidParameter("tables.answer_not_single")
        return next(iter(self.table.values()))[0] if not self.keys else self.table[next(iter(self.columns))][0]

    def read_notes(self, lang: Language | None = None) -> list[str]:
        """What a reader should know, each sentence once.

        Args:
            lang: "en" or "zh"; the chosen language where it is left out.

        >>> import mosha
        >>> account = mosha.Ledger.memory().account("visits", unit=mosha.Row(), epsilon=1)
        >>> answer = mosha.protect({"days": [3, 5]}, unit=mosha.Row(), account=account).count().release(epsilon=1)
        >>> answer.read_notes("zh")
        ['count 加拉普拉斯噪声。']
        """
        return list(dict.fromkeys(translate(note, lang or current_language()) for note in self.notes))

    def having(self, predicate: Callable[[dict[str, object]], bool]) -> Answer:
        """The rows for which `predicate` is true of the noisy numbers: free."""
        if not callable(predicate):
            raise InvalidParameter("tables.having_needs_function", parameter="predicate")
        chosen = [place for place, row in zip(self._places, self, strict=True) if predicate(row)]
        return replace(self, kept=tuple(chosen))

    def order_by(self, name: str, *, descending: bool = False) -> Answer:
        """The rows sorted by the key or noisy number `name`, the largest first where `descending`: free."""
        if name not in self.table:
            raise InvalidParameter("tables.answer_no_column", column=name, columns=list(self.table))
        column = self.table[name]
        order = sorted(range(len(column)), key=lambda i: (column[i] is not None, column[i]), reverse=descending)
        return replace(self, kept=tuple(self._places[i] for i in order))

    def limit(self, rows: int) -> Answer:
        """The first rows: free."""
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
            raise InvalidParameter("tables.limit_needs_rows", parameter="rows")
        return replace(self, kept=self._places[:rows])

    def pivot(self, value: str | None = None) -> dict[str, list[Any]]:
        """An answer by two keys laid out: the first key down, a column for each value of the second.

        Args:
            value: which aggregate; the only one where it is left out. A cell that was not released is None.
        """
        if len(self.keys) != 2 or (value is None and len(self.columns) != 1) or (value and value not in self.columns):
            raise InvalidParameter("tables.pivot_two_keys")
        table = self.table
        down, across = (list(dict.fromkeys(table[key])) for key in self.keys)
        numbers = table[value or next(iter(self.columns))]
        cells = dict(zip(zip(*(table[key] for key in self.keys), strict=True), numbers, strict=True))
        return {self.keys[0]: down} | {str(name): [cells.get((row, name)) for row in down] for name in across}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each row as a dictionary."""
        table = self.table
        for i in range(len(self._places)):
            yield {name: column[i] for name, column in table.items()}

    def __len__(self) -> int:
        return len(self._places)

    def to_pandas(self) -> Any:
        """The answer as a pandas DataFrame (needs the extra `pandas`)."""
        return load_guest("pandas", extra="pandas", needed_for=phrase("core.table_of", kind="pandas")).DataFrame(
            self.table
        )

    def to_polars(self) -> Any:
        """The answer as a Polars DataFrame (needs the extra `polars`)."""
        return load_guest("polars", extra="polars", needed_for=phrase("core.table_of", kind="Polars")).DataFrame(
            self.table
        )

    def to_arrow(self) -> Any:
        """The answer as an Arrow table (needs the extra `arrow`)."""
        return load_guest("pyarrow", extra="arrow", needed_for=phrase("core.table_of", kind="Arrow")).table(self.table)

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Plain data: the columns, the error bars of the aggregates, the notes and the receipt.

        Args:
            confidence: of the error bars. A bar that says nothing is None, as is an answer that is not a number.
        """
        bars = self.error(confidence)
        return {
            "keys": list(self.keys),
            "columns": {name: _write_column(column) for name, column in self.table.items()},
            "errors": {name: _write_column(bars[name]) for name in self.columns},
            "confidence": confidence,
            "in_rows": list(self.in_rows),
            "estimated": list(self.estimated),
            "notes": list(self.notes),
            "receipt": self.receipt.to_dict(),
        }

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Any:  # fmt: skip
        """A picture with error bars of 95%, which a notebook shows and `savefig` writes (needs the extra `plot`).

        Bars, or a line with a band where the key is a date, or a heat map where two keys make a full grid; intervals
        where there are no groups.

        Args:
            ax: axes of matplotlib to draw on; several aggregates stand inside of them, one below the other.
            title: what stands above.
            unit: what the numbers are counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
        """
        return draw_as_asked(self._draw, ax=ax, title=title, unit=unit, lang=lang, footer=self.receipt.write_footer)

    def _draw(self) -> Any:
        from mosha.pictures import draw_groups, draw_intervals  # noqa: PLC0415  (drawn when they are asked for)
        from mosha.pictures.grouped import name_quantile  # noqa: PLC0415  (the same)

        table, bars, bar = self.table, self.error(0.95), say("tables.picture_bars")
        if not self.keys and (ends := self._find_ends(table, bars)):
            names = [name_quantile(name) for name in self.columns]
            return draw_intervals(names, *ends, title=f"{', '.join(names)} ({bar})")
        return draw_groups(
            {name: table[name] for name in self.keys},
            {name: [math.nan if value is None else value for value in table[name]] for name in self.columns},
            {name: None if name in self.in_rows else bars[name] for name in self.columns},
            notes={name: "" if name in self.in_rows else f" ({bar})" for name in self.columns},
        )

    def _find_ends(self, table: Mapping[str, Any], bars: Mapping[str, Any]) -> tuple[list[float], list[float]] | None:
        """The numbers and bars of an answer without groups, where one axis can show them all."""
        pairs = [(table[name][0], bars[name][0]) for name in self.columns if name not in self.in_rows]
        if len(pairs) < len(self.columns) or any(number is None for number, _ in pairs):
            return None
        sizes = [abs(number) + width for number, width in pairs]
        fits = max(sizes) <= ONE_AXIS * min(sizes)
        return ([number for number, _ in pairs], [width for _, width in pairs]) if fits else None

    def to_chart(self, value: str | None = None, *, title: str = "") -> Any:
        """The picture as an interactive Altair chart (needs the extra `interactive`).

        Args:
            value: which aggregate; the first one where it is left out.
            title: what stands above.
        """
        from mosha.pictures.interactive import chart_groups  # noqa: PLC0415  (drawn when it is asked for)

        name = next(iter(self.columns)) if value is None else value
        if name not in self.columns:
            raise InvalidParameter("tables.answer_no_column", column=name, columns=list(self.columns))
        table, bars = self.table, None if name in self.in_rows else self.error(0.95)[name]
        footer = f"{self.receipt.measure} {self.receipt.cost:.4g}, {self.receipt.unit.describe()}"
        keys = {key: table[key] for key in self.keys}
        return chart_groups(keys, table[name], bars, name=name, title=title, footer=footer)


def _write_column(column: list[object]) -> list[Any]:
    """Values as JSON holds them: dates as text, None in place of what is no number."""
    plain = to_plain(column)
    return [None if isinstance(value, float) and not math.isfinite(value) else value for value in plain]
