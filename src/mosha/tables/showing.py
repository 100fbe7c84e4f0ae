"""The cards of tables, questions and answers: what people see of them, and nothing that depends on private rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mosha.core.account import Account
from mosha.core.errors import MoshaError
from mosha.core.language import say
from mosha.core.showing import MISSING, Bar, Card, draw_bars, write_number
from mosha.core.unit import Person, Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mosha.connect.language.schema import Schema
    from mosha.core.release import Receipt
    from mosha.tables.declaration import Declaration

__all__ = ["make_answer_card", "make_grouped_card", "make_question_card", "make_table_card", "summarize_answer"]

EPSILONS = (0.1, 0.5, 1.0, 3.0)
"""The prices for which a question shows its forecast."""

MOST_KEYS_SHOWN = 6
MOST_CELLS = 10_000
"""Questions with more groups than this show no forecast: it would take too long for a glance."""


class _Asked(Protocol):
    """What tables, groups and questions tell alike."""

    @property
    def unit(self) -> Unit: ...
    @property
    def account(self) -> Account | None: ...


class _Table(_Asked, Protocol):
    @property
    def schema(self) -> Schema: ...
    @property
    def declared(self) -> Declaration: ...


class _Grouped(Protocol):
    @property
    def table(self) -> _Asked: ...
    @property
    def keys(self) -> Sequence[tuple[str, object]]: ...
    @property
    def only(self) -> Sequence[object] | None: ...


class _Question(_Asked, Protocol):
    @property
    def title(self) -> str: ...
    @property
    def keys(self) -> Sequence[tuple[str, object]]: ...
    @property
    def only(self) -> Sequence[object] | None: ...
    @property
    def private_keys(self) -> bool: ...
    @property
    def aggregates(self) -> Mapping[str, object]: ...
    def forecast(self, *, epsilon: float) -> Mapping[str, NDArray[np.float64]]: ...


class _Answer(Sized, Protocol):
    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def columns(self) -> Mapping[str, object]: ...
    @property
    def table(self) -> Mapping[str, Sequence[object]]: ...
    @property
    def in_rows(self) -> Sequence[str]: ...
    @property
    def whole(self) -> Sequence[str]: ...
    @property
    def estimated(self) -> Sequence[str]: ...
    @property
    def receipt(self) -> Receipt: ...
    @property
    def public(self) -> bool: ...
    def read_notes(self) -> Sequence[str]: ...
    def error(self, confidence: float, /) -> Mapping[str, Sequence[object]]: ...


def make_table_card(table: _Table) -> Card:
    """Columns, what is declared of them, who is hidden and who pays: all of it public."""
    lines = [[name, str(kind), _describe_declared(name, table.declared)] for name, kind in table.schema.items()]
    heads = [say("tables.shown_column"), say("tables.shown_type"), say("tables.shown_declared")]
    facts = [*_describe_unit(table.unit), (say("core.shown_account"), _describe_account(table.account))]
    notes = (say("tables.shown_ask"),)
    return Card(title=say("tables.shown_table"), facts=facts, heads=heads, lines=lines, numbers=3, notes=notes)


def make_grouped_card(grouped: _Grouped) -> Card:
    """A table in groups: by what, and where the groups come from."""
    facts = [
        (say("tables.shown_groups"), _describe_groups([name for name, _ in grouped.keys], grouped.only)),
        *_describe_unit(grouped.table.unit),
        (say("core.shown_account"), _describe_account(grouped.table.account)),
    ]
    return Card(title=say("tables.shown_grouped"), facts=facts, notes=(say("tables.shown_ask_groups"),))


def make_question_card(question: _Question) -> Card:
    """What will be asked, and how wide the error bars would be for some prices: nothing is read, nothing is spent."""
    by = [(say("tables.shown_groups"), _describe_groups([name for name, _ in question.keys], question.only))]
    facts = [
        *(by if question.keys else []),
        *_describe_unit(question.unit),
        (say("core.shown_account"), _describe_account(question.account)),
    ]
    title = say("tables.shown_question", question=question.title)
    forecasts = _forecast(question)
    known = [name for name in question.aggregates if all(_shrinks(forecasts, name))]
    if not forecasts or not known:
        bought = isinstance(question.unit, Person) and question.unit.at_most is None and question.unit.groups is None
        return Card(title=title, facts=facts, notes=(say(f"tables.shown_no_forecast{'_yet' if bought else ''}"),))
    lines = [[f"{price:g}", *(write_number(bars[name], bars[name]) for name in known)] for price, bars in forecasts]
    notes = [say("tables.shown_forecast")]
    if rest := [name for name in question.aggregates if name not in known]:
        notes.append(say("tables.shown_needs_rows", aggregates=rest))
    return Card(
        title=title, facts=facts, heads=["epsilon", *(f"± {name}" for name in known)], lines=lines, numbers=0,
        notes=notes,
    )  # fmt: skip


def _forecast(question: _Question) -> list[tuple[float, dict[str, float]]]:
    """The widest bar of each aggregate by price; empty where that takes long, or needs more than an epsilon."""
    if len(question.only or ()) > MOST_CELLS or question.private_keys:
        return []
    try:
        found = [(epsilon, question.forecast(epsilon=epsilon)) for epsilon in EPSILONS]
    except MoshaError:
        return []
    return [(e, {name: float(np.max(np.asarray(b, np.float64))) for name, b in bars.items()}) for e, bars in found]


def _shrinks(forecasts: Sequence[tuple[float, Mapping[str, float]]], name: str) -> Iterator[bool]:
    """Whether a bar is finite and gets narrower with the price: otherwise it waits for a guess of the rows."""
    for (_, wide), (_, narrow) in itertools.pairwise(forecasts):
        yield math.isfinite(wide[name]) and narrow[name] < wide[name]


def make_answer_card(answer: _Answer) -> Card:
    """Numbers rounded to what their error bars support, a bar for each, notes and the receipt."""
    if answer.public:
        return _make_public_card(answer)
    table, bars = answer.table, answer.error(0.95)
    several = len(answer) > 1
    heads = list(answer.keys)
    cells: list[Sequence[str | Bar]] = [[_write_key(value) for value in table[key]] for key in answer.keys]
    for name in answer.columns:
        numbers = [_as_number(value) for value in table[name]]
        errors = [_as_number(value) for value in bars[name]]
        own = name not in answer.in_rows
        heads += [name, "±"]
        cells.append(_write_values(table[name], errors if own else [math.nan] * len(numbers), name in answer.whole))
        cells.append([_write_error(error, own=own, whole=name in answer.whole) for error in errors])
        if several and own:
            heads.append("")
            cells.append(draw_bars(numbers, errors))
    return Card(
        title=_title(answer), heads=heads, lines=list(zip(*cells, strict=True)), numbers=len(answer.keys),
        notes=[*answer.read_notes(), _explain_bars(answer), str(answer.receipt)],
    )  # fmt: skip


def _explain_bars(answer: _Answer) -> str:
    """What ± means: the noise, and for some aggregates an estimate beside it."""
    if not answer.estimated:
        return say("core.shown_bars")
    return say("tables.shown_bars_estimated", names=list(answer.estimated))


def _make_public_card(answer: _Answer) -> Card:
    """Public rows as they are: without bars, for there is no noise."""
    table = answer.table
    cells = [[_write_key(value) for value in table[key]] for key in answer.keys]
    cells += [[write_number(value) for value in table[name]] for name in answer.columns]
    return Card(
        title=_title(answer), heads=list(table), lines=list(zip(*cells, strict=True)), numbers=len(answer.keys),
        notes=list(answer.read_notes()),
    )  # fmt: skip


def summarize_answer(answer: _Answer) -> str:
    """One line: the number where there is one, or how many groups there are."""
    if len(answer) == 1 and len(answer.columns) == 1:
        (name,) = answer.columns
        line = make_answer_card(answer).lines[0]
        if answer.public:
            return f"Answer({''.join(f'{key}: ' for key in line[:-1])}{name} {line[-1]})"
        keys, (value, bar) = line[: len(answer.keys)], line[len(answer.keys) : len(answer.keys) + 2]
        return f"Answer({''.join(f'{key}: ' for key in keys)}{name} {value} ± {bar})"
    return f"Answer({_title(answer)}: {len(answer):,} {'row' if len(answer) == 1 else 'rows'})"


def _title(answer: _Answer) -> str:
    if not answer.columns:
        return ", ".join(answer.keys)
    by = f" by {', '.join(answer.keys)}" if answer.keys else ""
    return f"{', '.join(answer.columns)}{by}"


def _write_values(values: Sequence[object], errors: Sequence[float], whole: bool) -> list[str]:  # noqa: FBT001
    return [write_number(value, error, whole=whole) for value, error in zip(values, errors, strict=True)]


def _write_error(error: float, *, own: bool, whole: bool) -> str:
    """The half-width: whole where a count's is, so that a count is never said to be exact by rounding down."""
    if not math.isfinite(error):
        return MISSING
    if not own:
        return say("tables.shown_rows", rows=f"{math.ceil(error):,}")
    return f"{math.ceil(error):,}" if whole else write_number(error, error)


def _as_number(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan


def _write_key(value: object) -> str:
    """A key as people write it: days without the midnight behind them."""
    text = MISSING if value is None else str(value)
    return text.removesuffix("+00:00").removesuffix(" 00:00:00") if text[:1].isdigit() else text


def _describe_declared(name: str, declared: Declaration) -> str:
    ranges: Mapping[str, Any] = declared.ranges
    if name in ranges:
        between = ranges[name]
        return f"{between[0]:g} … {between[1]:g}" if isinstance(between, tuple | list) else str(between)
    if name in declared.keys:
        listed = [_write_key(key) for key in declared.keys[name]]
        more = "" if len(listed) <= MOST_KEYS_SHOWN else f", … ({len(listed):,})"
        return ", ".join(listed[:MOST_KEYS_SHOWN]) + more
    return ""


def _describe_groups(names: Sequence[str], only: Sequence[object] | None) -> str:
    code = "tables.shown_groups_from_data" if only is None else "tables.shown_groups_listed"
    return say(code, columns=list(names), groups=f"{len(only or ()):,}")


def _describe_unit(unit: Unit) -> list[tuple[str, str]]:
    facts = [(say("core.shown_hidden"), unit.describe())]
    most = getattr(unit, "at_most", None)
    if most is None:
        return facts
    said = say("core.shown_at_most_one") if most == 1 else say("core.shown_at_most", rows=most)
    return [*facts, (say("core.shown_limit"), said)]


def _describe_account(account: Account | None) -> str:
    if account is None:
        return say("core.shown_no_account")
    room = account.describe_room()
    return f"{account.name} ({room})" if room else account.name
