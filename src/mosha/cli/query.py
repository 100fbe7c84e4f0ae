"""`mosha query`: a SELECT about one protected file or table, paid from a ledger."""

from __future__ import annotations

import math
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from mosha.cli.books import find_account, place_book
from mosha.cli.terminal import Json, console, write_json
from mosha.core.errors import AccountMismatch, InvalidParameter
from mosha.core.language import make_note, say
from mosha.core.number import positive, strict_probability
from mosha.core.options import QuantileBars
from mosha.core.release import describe_as, write_left
from mosha.core.showing import write_number
from mosha.core.unit import Person, Row, Unit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mosha.ledger import Ledger, LedgerAccount
    from mosha.sql import Statement
    from mosha.tables import Answer
    from mosha.tables.sql.asked_first import AskedFirst
    from mosha.tables.sql.unions import United

__all__ = ["query"]


def query(
    data: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, folder or glob, a DuckDB file, a PostgreSQL or MariaDB URL.")
    ],
    sql: Annotated[str, typer.Argument(help="One SELECT; the table is called by the file's name, or 'data'.")],
    *,
    unit: Annotated[
        str | None, typer.Option(help="The column that says whose row it is; 'row' if each row is a person of its own.")
    ] = None,
    at_most: Annotated[int | None, typer.Option(help="Rows that one person may have; more are scaled down.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The price of this answer, or:")] = None,
    rho: Annotated[float | None, typer.Option(help="The price in zero-concentrated differential privacy.")] = None,
    delta: Annotated[float, typer.Option(help="Allows Gaussian noise and groups that come from the data.")] = 0.0,
    within: Annotated[float | None, typer.Option(help="Pay for this accuracy instead (with --confidence).")] = None,
    confidence: Annotated[float, typer.Option(help="How often the noise stays within the error bars.")] = 0.95,
    rows: Annotated[
        float | None, typer.Option(help="With --within: a public guess of the rows in a group, for means and spreads.")
    ] = None,
    bars: Annotated[str, typer.Option(help="Error bars of quantiles: bought in 'values', or in 'rows'.")] = "values",
    separator: Annotated[str | None, typer.Option(help="What separates the cells of a CSV file (a comma).")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a CSV file that is not UTF-8, such as gbk.")] = None,
    table: Annotated[str | None, typer.Option(help="The table's name in a database.")] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="A declaration of unit, types, ranges and keys; DATA.schema.yaml (.toml, .json) by default."),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that pays; DATA.privacy.db by default.")] = None,
    account: Annotated[str | None, typer.Option(help="The account that pays; the table's name by default.")] = None,
    limit_epsilon: Annotated[
        float | None, typer.Option(help="The limit of an account that is opened here (3).")
    ] = None,
    limit_delta: Annotated[
        float | None, typer.Option(help="The delta of an account that is opened here (1e-6).")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Makes a retry free: the same key finds the same answer.")] = None,
    deadline: Annotated[float | None, typer.Option(help="Break the question off after so many seconds.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say in a few sentences what would run.")] = False,
    sql_only: Annotated[bool, typer.Option("--statements", help="Show the SQL that would run and its price.")] = False,
    as_json: Json = False,
) -> None:
    """Ask a protected table: noisy answers with error bars, and what is left of the budget."""
    data, sql = _put_in_order(data, sql)
    _check(epsilon, rho, within, confidence, limit_epsilon)
    import mosha  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415
    from mosha.sql import Statement, statement  # noqa: PLC0415
    from mosha.tables.declaration import Declaration, beside  # noqa: PLC0415
    from mosha.tables.sql.asking import read_steps  # noqa: PLC0415

    declared = Declaration.of(schema or beside(data))
    name = _table_name(data, table)
    whose = _unit(unit, at_most, declared.unit, name)
    place = ledger or place_book(data)
    options: dict[str, Any] = {"table": table, "separator": separator, "encoding": encoding}
    protected = mosha.tables.protect(data, unit=whose, schema=declared, **options)
    named = dict.fromkeys((name, "data"), protected)
    shown_as = cast("QuantileBars", bars)
    steps = read_steps(sql, named, bars=shown_as)  # several questions
    checked = statement(sql, named, bars=shown_as) if steps is None else steps
    if explain or sql_only or checked.explained:
        prices = {"epsilon": epsilon, "rho": rho, "delta": delta}
        if isinstance(checked, Statement) and Path(place).is_file():  # the account that would pay is named
            with closing(mosha.Ledger(place, key=find_key_file(), create=False)) as book:
                payer = account or find_account(book, name, whose)
                known = next((one for one in book.accounts() if one.name == payer), None)
                asked = replace(checked, question=replace(checked.question, account=known))
                typer.echo(_explain(asked, prices, statements=sql_only))
            return
        typer.echo(_explain(checked, prices, statements=sql_only))
        return
    with closing(mosha.Ledger(place, key=find_key_file())) as book:
        payer = account or find_account(book, name, whose)
        paying = _account(book, payer, whose, limit_epsilon, limit_delta)
        level = None if within is None else confidence
        price: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "delta": delta, "within": within, "confidence": level}
        options = price | {"rows": rows, "key": key, "deadline": deadline}
        if isinstance(checked, Statement):
            raw = replace(checked.question, account=paying).release(**options)
            answer = checked.answer(raw)
        else:
            paid = dict.fromkeys(named, replace(protected, account=paying))
            raw = answer = cast("Answer", mosha.query(sql, tables=paid, bars=shown_as, **options))
        if raw.keys and not raw.rows:
            answer = replace(answer, notes=(*answer.notes, make_note("cli.no_group")))
        _show(answer, confidence, place, as_json=as_json)


def _explain(checked: Statement | AskedFirst | United, prices: Mapping[str, float | None], *, statements: bool) -> str:
    """What would run, in a few sentences or as the statements themselves."""
    from mosha.sql import Statement  # noqa: PLC0415

    if not isinstance(checked, Statement):
        return checked.explain(prices, statements=statements)
    epsilon, rho = prices["epsilon"], prices["rho"]
    return checked.question.explain(epsilon=epsilon, rho=rho, delta=prices["delta"] or 0.0, statements=statements)


def _check(
    epsilon: float | None, rho: float | None, within: float | None, confidence: float, limit: float | None
) -> None:
    """Refuse wrong numbers before anything is loaded or opened."""
    given = {"epsilon": epsilon, "rho": rho, "within": within}
    said = [name for name, value in given.items() if value is not None]
    if len(said) > 1:
        raise typer.BadParameter(say("cli.several_prices", given=said))
    for name in said:
        positive(name, given[name])
    strict_probability("confidence", confidence)
    if limit is not None:
        positive("limit-epsilon", limit)


def _account(book: Ledger, name: str, unit: Unit, epsilon: float | None, delta: float | None) -> LedgerAccount:
    """The account that pays: opened here, or found; limits that are said must be those that it was opened under."""
    known = next((existing for existing in book.accounts() if existing.name == name), None)
    if known is None:
        epsilon, delta = 3.0 if epsilon is None else epsilon, 1e-6 if delta is None else delta
        return book.account(name, unit=unit, epsilon=epsilon, delta=delta)
    if epsilon is None and delta is None:
        return book.account(name, unit=unit)
    terms = known.rule.to_dict()
    if (epsilon is None or epsilon == terms.get("epsilon")) and (delta is None or delta == terms.get("delta")):
        return book.account(name, unit=unit)
    raise AccountMismatch("cli.other_limit", account=name, promise=str(known.promise), spent="nothing")


def _unit(unit: str | None, at_most: int | None, declared: Unit | None, name: str) -> Unit:
    """As it is said here; what is not said is as it was declared."""
    if unit is None:
        if declared is None:
            raise InvalidParameter("cli.query_whose", parameter="--unit", name=f"{name}.schema.yaml", spent="nothing")
        return declared if at_most is None else replace(declared, at_most=at_most)  # type: ignore[call-arg]
    said = Row(at_most=1 if at_most is None else at_most) if unit == "row" else Person(unit, at_most=at_most)
    return declared if at_most is None and declared is not None and said.protects_same(declared) else said


def _put_in_order(data: str, sql: str) -> tuple[str, str]:
    """The data first and the SELECT second, whichever way they were given."""
    turned = re.match(r"\s*(SELECT|WITH|EXPLAIN)\s", data, re.IGNORECASE) and not Path(data).exists()
    return (sql, data) if turned else (data, sql)


def _table_name(data: str, table: str | None) -> str:
    """What FROM calls the table: its name in the database, or the file's name without its ending."""
    plain = table.rpartition(".")[2] if table else Path(data.rstrip("/*")).name.split(".")[0]
    return re.sub(r"\W", "_", plain) or "data"


def _show(answer: Answer, confidence: float, place: str, *, as_json: bool) -> None:
    bars = answer.error(confidence)
    receipt = answer.receipt
    if as_json:
        plain = {name: [None if _missing(bar) else bar for bar in column] for name, column in bars.items()}
        described = {"table": answer.table, "error": {n: plain[n] for n in answer.columns}, "confidence": confidence}
        write_json(described | {"receipt": receipt.to_dict(), "notes": answer.read_notes(), "ledger": place})
        return
    from rich.table import Table  # noqa: PLC0415

    shown = Table(*answer.table, box=None, header_style="bold")
    for place_of, row in enumerate(answer):
        cells = [
            str(value) if n in answer.keys else _write_cell(n, value, bars[n][place_of], answer)
            for n, value in row.items()
        ]
        shown.add_row(*cells)
    out = console()
    out.print(shown)
    out.print(say("cli.bars_hold", confidence=f"{confidence:.0%}"))
    for note in answer.read_notes():
        out.print(note)
    paid = {"measure": receipt.measure, "cost": f"{receipt.cost:.4g}", "account": receipt.account, "place": place}
    left = {
        "left": write_left(receipt.remaining, receipt.limit, receipt.measure, receipt.more),
        "limit": f"{receipt.limit:.4g}",
    }
    left["meaning"] = describe_as(receipt.left_as)
    out.print(say("cli.paid_from", **paid, **left))


def _missing(bar: object) -> bool:
    return isinstance(bar, float) and not math.isfinite(bar)


def _write_cell(name: str, value: object, bar: float, answer: Answer) -> str:
    """A number with the digits that its bar supports, and the bar."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else str(value)
    if name in answer.in_rows:
        off = "?" if _missing(bar) else format(bar, ".3g")
        return say("cli.rows_off", value=f"{value:.6g}", off=off)
    whole = name in answer.whole
    width = "?" if _missing(bar) else f"{math.ceil(bar):,}" if whole else write_number(bar, bar)
    return f"{write_number(value, None if _missing(bar) else bar, whole=whole)} ± {width}"
