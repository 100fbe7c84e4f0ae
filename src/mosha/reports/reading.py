"""A report in a file: YAML (or TOML, or JSON) that names the data, the budget and the questions; data, never code."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from mosha.core.account import Account
from mosha.core.errors import InvalidParameter
from mosha.core.language import read_language
from mosha.core.unit import Edge, Node, Person, Row, Unit
from mosha.graphs import ProtectedGraph
from mosha.graphs import protect as protect_graph
from mosha.graphs.question import VERBS
from mosha.ledger import Ledger
from mosha.ledger.storage.key import find_key_file
from mosha.reports.questions import Questions
from mosha.reports.stream_part import RowsOfFile, StreamKind, StreamShow, StreamStep
from mosha.tables import Question, Table, public_table
from mosha.tables import protect as protect_table
from mosha.tables.declaration import Declaration, beside

__all__ = ["FIELDS", "read_report"]

FIELDS = ("title", "period", "language", "budget", "ledger", "account", "limit", "data", "questions")
DATA_FIELDS = {"path", "table", "schema", "public", "graph", "vertices", "unit", "account", "separator", "encoding"}
R = TypeVar("R", bound=Questions)
Fields = Mapping[str, Any]
KINDS = ("sql", "ask", "margins", "stream", "graph")
WORDS = {"title", "text", "within", "confidence", "weight", "rows"}
STREAM_FIELDS = {"data", "time", "step", "kind", "column", "between", "show"}


@dataclass
class _Opened:
    """The tables, graphs and files of a report, by name, and the accounts that pay for them."""

    tables: dict[str, Any] = field(default_factory=dict)
    graphs: dict[str, ProtectedGraph] = field(default_factory=dict)
    places: dict[str, tuple[str, Account]] = field(default_factory=dict)


def read_report(path: str | os.PathLike[str], make: Callable[..., R]) -> R:
    """The report that a file describes, made by `make`; paths in it are relative to it."""
    place = Path(path)
    said = _read_fields(place)
    _check_fields(said, set(FIELDS), "")
    budget = _take_mapping(said, "budget")
    _check_fields(budget, {"epsilon", "delta", "rho"}, "budget")
    language = said.get("language")
    report = make(
        str(said.get("title") or ""), period=said.get("period", "once"),
        lang=None if language is None else read_language(str(language)),
        epsilon=budget.get("epsilon"), delta=float(budget.get("delta", 0.0)), rho=budget.get("rho"),
    )  # fmt: skip
    opened = _open_data(said, place.parent, report)
    for name, question in _take_mapping(said, "questions").items():
        report = _add_question(report, str(name), _as_mapping(question, f"questions.{name}"), opened)
    return report


def _read_fields(place: Path) -> dict[str, Any]:
    ending = place.suffix.lower()
    try:
        text = place.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter("reports.file_unreadable", parameter="path", path=place.name) from None
    try:
        if ending == ".json":
            stored = json.loads(text)
        elif ending == ".toml":
            stored = tomllib.loads(text)
        else:
            import yaml  # noqa: PLC0415  (only whoever writes YAML)

            try:
                stored = yaml.safe_load(text)
            except yaml.YAMLError as problem:
                mark = getattr(problem, "problem_mark", None)
                line = 0 if mark is None else mark.line + 1
                raise InvalidParameter("reports.yaml_line", parameter="path", path=place.name, line=line) from None
    except (ValueError, RecursionError):
        raise InvalidParameter("reports.file_not_parsed", parameter="path", path=place.name) from None
    return dict(_as_mapping(stored, "report"))


def _as_mapping(value: object, where: str) -> Fields:
    if not isinstance(value, Mapping):
        raise InvalidParameter("reports.not_names", parameter=where)
    return value


def _take_mapping(said: Fields, name: str) -> Mapping[str, Any]:
    if name not in said:
        raise InvalidParameter("reports.field_missing", parameter=name, fields=list(FIELDS))
    return _as_mapping(said[name], name)


def _check_fields(said: Fields, known: set[str], where: str) -> None:
    if unknown := [str(name) for name in said if name not in known]:
        place = f"{where}.{unknown[0]}" if where else unknown[0]
        raise InvalidParameter("reports.unknown_field", parameter=place, fields=sorted(known))


def _open_data(said: Fields, folder: Path, report: Questions) -> _Opened:
    ledger = str(said.get("ledger") or "report.privacy.db")
    place = ledger if "://" in ledger or ledger == ":memory:" else str(folder / ledger)
    book = Ledger.memory() if ledger == ":memory:" else Ledger(place, key=find_key_file())
    limit = _as_mapping(said["limit"], "limit") if "limit" in said else report.budget.to_dict()
    opened = _Opened()
    for name, about in _take_mapping(said, "data").items():
        told = _as_mapping(about, f"data.{name}")
        _check_fields(told, DATA_FIELDS, f"data.{name}")
        _open_one(str(name), told, folder, opened, _Payer(book, str(said.get("account") or report.title), limit))
    return opened


@dataclass(frozen=True)
class _Payer:
    """Finds the account for a unit, or opens it."""

    book: Ledger
    name: str
    limit: Fields

    def find(self, unit: Unit, named: object) -> Account:
        known = {account.name: account for account in self.book.accounts()}
        plain = self.name if isinstance(unit, Row | Person) else f"{self.name} ({type(unit).__name__.lower()})"
        name = str(named) if named else plain
        if name in known:
            return self.book.account(name, unit=unit)
        return self.book.account(name, unit=unit, **self.limit)


def _open_one(name: str, told: Fields, folder: Path, opened: _Opened, payer: _Payer) -> None:
    where = told.get("path") or told.get("graph")
    if not isinstance(where, str):
        raise InvalidParameter("reports.data_without_path", parameter=f"data.{name}.path")
    place = where if "://" in where else str(folder / where)
    options = {option: told[option] for option in ("table", "separator", "encoding") if option in told}
    if told.get("public"):
        opened.tables[name] = public_table(place, **options)
        return
    if "graph" in told:
        unit = _read_unit(told.get("unit"), name, graph=True)
        account = payer.find(unit, told.get("account"))
        opened.graphs[name] = protect_graph(place, unit=unit, account=account, vertices=told.get("vertices"))
        return
    schema = Declaration.of(folder / told["schema"] if isinstance(told.get("schema"), str) else beside(place))
    whose = schema.unit if told.get("unit") is None else _read_unit(told["unit"], name, graph=False)
    if not isinstance(whose, Row | Person):
        raise InvalidParameter("reports.data_without_unit", parameter=f"data.{name}.unit")
    account = payer.find(whose, told.get("account"))
    opened.tables[name] = protect_table(place, unit=whose, account=account, schema=schema, **options)
    opened.places[name] = (place, account)


def _read_unit(said: object, name: str, *, graph: bool) -> Unit:
    """`row`, `{person: column, at_most: 3}`; of a graph `edge` or `{node: 50}`."""
    if graph:
        if said in (None, "edge"):
            return Edge()
        if isinstance(said, Mapping) and set(said) == {"node"}:
            return Node(max_degree=said["node"])
    elif said == "row":
        return Row()
    elif isinstance(said, Mapping) and "person" in said:
        limits = {option: value for option, value in said.items() if option != "person"}
        if set(limits) <= {"at_most", "groups", "per_group", "total", "of"}:
            return Person(said["person"], **limits)
    raise InvalidParameter("reports.unit_shape", parameter=f"data.{name}.unit")


def _add_question(report: R, name: str, said: Fields, opened: _Opened) -> R:
    kinds = [kind for kind in KINDS if kind in said]
    if len(kinds) != 1:
        raise InvalidParameter("reports.one_kind", parameter=f"questions.{name}", kinds=list(KINDS))
    (kind,) = kinds
    _check_fields(said, WORDS | {kind, "data"}, f"questions.{name}")
    words: dict[str, Any] = {word: said[word] for word in WORDS if word in said}
    if kind == "sql":
        return report.add_sql(name, said["sql"], opened.tables, **words)
    if kind == "stream":
        return _add_stream(report, name, _as_mapping(said["stream"], f"questions.{name}.stream"), opened, words)
    if kind == "graph":
        return _add_graph(report, name, said, opened, words)
    table = _find_one(opened.tables, said.get("data"), f"questions.{name}.data")
    if kind == "margins":
        columns = said["margins"]
        if not isinstance(columns, Sequence) or isinstance(columns, str) or not isinstance(table, Table):
            raise InvalidParameter("reports.margins_columns", parameter=f"questions.{name}.margins")
        return report.add_margins(name, table, columns, **words)
    return report.add(name, Question.from_dict(opened.tables | {"table": table}, said["ask"]), **words)


def _find_one(known: Fields, name: object, where: str) -> Any:
    """What is named, or the only one there is."""
    if name is None and len(known) == 1:
        return next(iter(known.values()))
    if not isinstance(name, str) or name not in known:
        raise InvalidParameter("reports.unknown_data", parameter=where, names=list(known))
    return known[name]


def _add_graph(report: R, name: str, said: Fields, opened: _Opened, words: Fields) -> R:
    graph = _find_one(opened.graphs, said.get("data"), f"questions.{name}.data")
    asked = said["graph"]
    verb, options = (asked, {}) if isinstance(asked, str) else next(iter(_as_mapping(asked, name).items()), ("", {}))
    if verb not in VERBS:
        raise InvalidParameter("reports.unknown_verb", parameter=f"questions.{name}.graph", verbs=sorted(VERBS))
    try:
        question = getattr(graph, verb)(**(options or {}))
    except TypeError:
        raise InvalidParameter("reports.verb_options", parameter=f"questions.{name}.graph", verb=verb) from None
    return report.add(name, question, **words)


def _add_stream(report: R, name: str, said: Fields, opened: _Opened, words: Fields) -> R:
    where = f"questions.{name}.stream"
    _check_fields(said, STREAM_FIELDS, where)
    place, account = _find_one(opened.places, said.get("data"), f"{where}.data")
    for option, kind in (("step", StreamStep), ("kind", StreamKind), ("show", StreamShow)):
        if option in said and said[option] not in get_args(kind):
            raise InvalidParameter("core.unknown_option", parameter=f"{where}.{option}", options=list(get_args(kind)))
    if not isinstance(said.get("time"), str):
        raise InvalidParameter("reports.stream_time", parameter=f"{where}.time")
    if not place.lower().endswith(".csv"):
        raise InvalidParameter("reports.stream_csv", parameter=f"{where}.data")
    rows = RowsOfFile(place, said["time"])
    options = {option: said[option] for option in ("step", "kind", "column", "show", "between") if option in said}
    return report.add_stream(name, rows, account=account, **options, **words)
