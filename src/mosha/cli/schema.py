"""`mosha schema` and `mosha start`: from a file of unknown shape to a declaration, a ledger and a first report."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

import typer

from mosha.cli.books import find_account, find_known_book
from mosha.cli.terminal import Json, write_json
from mosha.core.errors import InvalidParameter
from mosha.core.language import say

__all__ = ["app", "start"]

app = typer.Typer(no_args_is_help=True, help="Declarations: what is publicly known about a table.")

Data = Annotated[str, typer.Argument(help="The data: CSV, Parquet, Excel, a database, a Delta or Iceberg folder, ...")]
TableName = Annotated[str | None, typer.Option(help="The table's name in a database, or the sheet's.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV file that is not UTF-8, such as gbk.")]


Read = TypeVar("Read")


@app.command("draft")
def draft(
    data: Data,
    *,
    out: Annotated[Path | None, typer.Option(help="The file to write; DATA.schema.yaml beside it by default.")] = None,
    table: TableName = None,
    encoding: Encoding = None,
    person: Annotated[
        str | None,
        typer.Option(help="The column that says whose row it is; for a whole database its key, such as customer.id."),
    ] = None,
    public_sample: Annotated[
        str | None, typer.Option(help="A PUBLIC CSV file of the same columns, whose values may be looked at.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Begin a declaration from the header of a file, or the catalog of a database; no row is read."""
    from mosha.tables import draft_database  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.tables.drafting import draft_declaration  # noqa: PLC0415

    place = out or _place_beside(data)
    if place.suffix not in {".yaml", ".yml"}:
        raise InvalidParameter("cli.draft_is_yaml", parameter="--out", given=place.suffix, spent="nothing")
    whole = person is not None and "." in person
    if not whole:
        text = draft_declaration(data, table=table, encoding=encoding, sample=public_sample, person=person)
    elif table is None and encoding is None and public_sample is None:
        text = draft_database(data, person=str(person))
    else:
        raise InvalidParameter("cli.draft_of_database", parameter="--person")
    _write_new(place, text)
    if as_json:
        write_json({"file": str(place)})
    elif not whole:
        typer.echo(say("cli.schema_drafted", path=str(place), data=data))
    else:
        typer.echo(say("cli.database_drafted", path=str(place)))


@app.command("check")
def check(
    data: Data,
    *,
    schema: Annotated[Path | None, typer.Option(help="The declaration; the one beside the data by default.")] = None,
    table: TableName = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Say what a declaration lacks, and what each choice in it means; the exit code is 1 where something is missing."""
    from mosha.connect import source  # noqa: PLC0415
    from mosha.tables.declaration import ENDINGS, Declaration, beside  # noqa: PLC0415
    from mosha.tables.drafting import check_declaration, gather_advice  # noqa: PLC0415

    if data.endswith(tuple(f".schema{ending}" for ending in ENDINGS)):
        raise InvalidParameter("cli.check_takes_data", parameter="data", path=data, spent="nothing")
    declared = Declaration.of(schema or beside(data))
    opened = source(data, table=table, encoding=encoding, columns=tuple(declared.types))
    advice = check_declaration(declared, opened)
    if as_json:
        write_json({"advice": [vars(each) for each in advice], "complete": not any(each.missing for each in advice)})
    else:
        for each in gather_advice(advice):
            typer.echo(f"{'!' if each.missing else '-'} {each.text}")
    if any(each.missing for each in advice):
        raise typer.Exit(1)


def start(
    data: Data,
    *,
    person: Annotated[
        str | None, typer.Option(help="The column that says whose row it is; asked for otherwise.")
    ] = None,
    at_most: Annotated[int | None, typer.Option(help="How many rows one person may have; asked for otherwise.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="What a period may cost; asked for otherwise.")] = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Answer a steward's questions in order; writes a declaration, opens a ledger and drafts a first report."""
    import mosha  # noqa: PLC0415
    from mosha.connect import source  # noqa: PLC0415
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415
    from mosha.reports import draft_report  # noqa: PLC0415
    from mosha.tables.declaration import Declaration  # noqa: PLC0415
    from mosha.tables.drafting import draft_declaration, guess_person  # noqa: PLC0415

    names = list(source(data, encoding=encoding).schema)
    if not as_json:
        typer.echo(say("cli.start_columns", columns=names))
    if person is not None and person not in names:
        raise InvalidParameter("cli.start_no_column", parameter="--person", columns=names)
    listed = {name: name for name in names}
    whose = person or _ask("cli.start_person", guess_person(names), listed.__getitem__, "cli.start_again_column")
    most = at_most or _ask("cli.start_at_most", "5", _read_count, "cli.start_again_count")
    price = epsilon or _ask("cli.start_epsilon", "1.0", _read_price, "cli.start_again_number")
    place = _place_beside(data)
    text = draft_declaration(data, encoding=encoding, person=whose)
    _write_new(place, text.replace("at_most: 5}", f"at_most: {most}}}", 1))
    declared = Declaration.of(place)
    name = Path(data).name.split(".")[0]
    report = Path(data).with_name(f"{name}.report.yaml")
    unit = mosha.Person(whose, at_most=most)
    book = find_known_book(data) or str(Path(data).with_name(f"{name}.privacy.db"))
    ledger = mosha.Ledger(book, key=find_key_file())
    account = find_account(ledger, name.replace("_", " ").capitalize(), unit)
    drafted = draft_report(
        data=Path(data).name, declared=declared, ledger=Path(book).name, account=account, encoding=encoding
    )
    _write_new(
        report,
        drafted.replace("epsilon: 1.0,", f"epsilon: {price},").replace("{epsilon: 3,", f"{{epsilon: {3 * price:g},"),
    )
    if all(known.name != account for known in ledger.accounts()):
        ledger.account(account, unit=unit, epsilon=3 * price, delta=1e-5)
    ledger.close()
    if as_json:
        write_json({"schema": str(place), "ledger": book, "report": str(report)})
    else:
        typer.echo(say("cli.start_done", schema=str(place), ledger=book, report=str(report)))


def _ask(question: str, default: str | None, read: Callable[[str], Read], again: str) -> Read:
    """What somebody answers, asked until it can be read; `question` and `again` are codes of sentences."""
    while True:
        try:
            return read(typer.prompt(say(question), default=default).strip())
        except (ValueError, LookupError):
            typer.echo(say(again))


def _read_count(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _read_price(text: str) -> float:
    if not 0 < float(text) < math.inf:
        raise ValueError
    return float(text)


def _place_beside(data: str) -> Path:
    """Beside the data; in the current folder for a database on a server, whose URL may hold a password."""
    path = Path(data) if "://" not in data else Path(Path(urlsplit(data).path).name or "database")
    return path.with_name(f"{path.name.split('.')[0]}.schema.yaml")


def _write_new(place: Path, text: str) -> None:
    if place.exists():
        raise InvalidParameter("cli.file_exists", parameter="path", path=str(place))
    place.write_text(text, encoding="utf-8")
