"""`mosha synth`: a synthetic table of a protected file, paid from a ledger."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from mosha.cli.books import find_account, place_book
from mosha.cli.terminal import Json, console, number, write_json
from mosha.core.errors import InvalidParameter
from mosha.core.language import say
from mosha.core.unit import Person, Row, Unit

__all__ = ["synth"]


def synth(
    data: Annotated[str, typer.Argument(help="A CSV or Parquet file, folder or glob, or a DuckDB file.")],
    out: Annotated[Path, typer.Argument(help="The file to write: .csv or .parquet, labeled as synthetic.")],
    *,
    epsilon: Annotated[float, typer.Option(help="The price of the table, with --delta.")],
    delta: Annotated[float, typer.Option(help="The delta of Gaussian noise.")] = 1e-9,
    unit: Annotated[str | None, typer.Option(help="The column of persons; 'row' if each row is one's own.")] = None,
    column: Annotated[list[str] | None, typer.Option(help="A column to imitate; all that are declared.")] = None,
    rows: Annotated[int | None, typer.Option(help="How many rows; the noisy number by default.")] = None,
    schema: Annotated[Path | None, typer.Option(help="A declaration; DATA.schema.yaml by default.")] = None,
    ledger: Annotated[str | None, typer.Option(help="The ledger that pays; DATA.privacy.db by default.")] = None,
    account: Annotated[str | None, typer.Option(help="The account that pays; the file's name by default.")] = None,
    limit_epsilon: Annotated[float, typer.Option(help="The limit of an account that is opened here.")] = 3.0,
    limit_delta: Annotated[float, typer.Option(help="The delta of an account that is opened here.")] = 1e-6,
    key: Annotated[str | None, typer.Option(help="Makes a retry free: the same key finds the same table.")] = None,
    forecast: Annotated[bool, typer.Option("--forecast", help="Say what to expect; nothing is spent.")] = False,
    as_json: Json = False,
) -> None:
    """Make a synthetic table: rows that look like the private ones, and belong to nobody."""
    import mosha  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415
    from mosha.synth.saving import check_place  # noqa: PLC0415
    from mosha.tables.declaration import Declaration, beside  # noqa: PLC0415

    declared = Declaration.of(schema or beside(data))
    whose = _find_unit(unit, declared.unit)
    words = {"columns": column or None, "rows": rows}
    if forecast:
        question = mosha.tables.protect(data, unit=whose, schema=declared).synthesize(**words)
        found = question.forecast(epsilon=epsilon, delta=delta, rows=rows)
        if as_json:
            write_json(found)
        else:
            _print_forecast(found)
        return
    check_place(out)  # a table that cannot be saved is not paid for
    place = ledger or place_book(data)
    with closing(mosha.Ledger(place, key=find_key_file())) as book:
        name = account or find_account(book, Path(data.rstrip("/*")).name.split(".")[0], whose)
        known = any(existing.name == name for existing in book.accounts())
        if known:
            paying = book.account(name, unit=whose)
        else:
            paying = book.account(name, unit=whose, epsilon=limit_epsilon, delta=limit_delta)
        table = mosha.tables.protect(data, unit=whose, schema=declared, account=paying)
        made = table.synthesize(**words).release(epsilon=epsilon, delta=delta, key=key)
        made.save(out)
        report = made.report()
    if as_json:
        receipt = None if made.receipt is None else made.receipt.to_dict()
        figures = {"rows": made.rows, "method": made.method, "error": report.error, "at_most": report.at_most}
        write_json({"file": str(out), **figures, "receipt": receipt, "ledger": place})
    else:
        console().print(str(report))
        console().print(say("cli.written_synthetic", out=str(out)))


def _print_forecast(found: dict[str, Any]) -> None:
    from mosha.synth.report import describe_method  # noqa: PLC0415

    console().print(say("cli.synth_rows", error=number(found["number of rows"])))
    for name, error in found["cell of a column"].items():
        console().print(say("cli.synth_cell", column=name, error=number(error)))
    if "method" in found:
        console().print(say("cli.synth_method", method=describe_method(found["method"])))
        for name, groups in found["groups"].items():
            console().print(say("cli.synth_groups", column=name, groups=groups))


def _find_unit(unit: str | None, declared: Unit | None) -> Unit:
    if unit is not None:
        return Row() if unit == "row" else Person(unit)
    if declared is None:
        raise InvalidParameter("synth.no_unit", parameter="--unit")
    return declared
