"""`mosha report`: several questions with one budget, in one file; drafted, forecast, run and shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosha.cli.books import find_known_account, find_known_book
from mosha.cli.terminal import Json, progress, write_json
from mosha.core.errors import InvalidParameter
from mosha.core.language import say

if TYPE_CHECKING:
    from mosha.reports import Edition

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Reports: several questions with one budget, paid once a period.")

File = Annotated[Path, typer.Argument(help="The report: a YAML, TOML or JSON file.")]
On = Annotated[str | None, typer.Option("--period", help="A day of the period, or its label; today's by default.")]
Out = Annotated[
    list[Path] | None, typer.Option("--out", help="A file to write: .html, .pdf, .md, .csv, .parquet, .ipynb, .json.")
]


@app.command("draft")
def draft(
    path: Annotated[Path, typer.Argument(help="The file to write.")],
    *,
    template: Annotated[str | None, typer.Option(help="hospital, school, city or telemetry.")] = None,
    data: Annotated[str | None, typer.Option(help="Data with a declaration beside them, to ask about.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a CSV file that is not UTF-8, such as gbk.")] = None,
    as_json: Json = False,
) -> None:
    """Begin a report: from a template, or from what a declaration declares; no row is read."""
    from mosha.reports import TEMPLATES, draft_report  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.tables.declaration import Declaration, beside  # noqa: PLC0415

    if (template is None) == (data is None):
        raise typer.BadParameter(say("cli.template_or_data", templates=", ".join(TEMPLATES)))
    if path.exists():
        raise InvalidParameter("cli.file_exists", parameter="path", path=str(path))
    declared = Declaration.of(beside(data)) if data else None
    book = find_known_book(data) if data else None
    if data and book and declared is not None and declared.unit is not None:
        name = Path(data.rstrip("/*")).name.split(".")[0]
        payer = find_known_account(book, name, declared.unit)
        text = draft_report(data=data, declared=declared, ledger=book, account=payer, encoding=encoding)
    else:
        text = draft_report(template=template, data=data or "", declared=declared, encoding=encoding)  # type: ignore[arg-type]
    path.write_text(text, encoding="utf-8")
    if as_json:
        write_json({"file": str(path)})
    else:
        typer.echo(say("cli.report_drafted", path=str(path)))


@app.command("forecast")
def forecast(path: File, *, on: On = None, as_json: Json = False) -> None:
    """Show what every question will cost and how accurate it will be; nothing is paid."""
    from mosha.reports import Report  # noqa: PLC0415

    found = Report.read(path).forecast(on=on)
    if as_json:
        write_json(found.to_dict())
    else:
        typer.echo(str(found))


@app.command("run")
def run(
    path: File,
    *,
    on: On = None,
    out: Out = None,
    widen: Annotated[bool, typer.Option("--widen", help="Go on if wishes cannot be met, with wider bars.")] = False,
    as_json: Json = False,
) -> None:
    """Pay for a period and answer; run again it finds the same answers and pays nothing."""
    from mosha.reports import Report  # noqa: PLC0415

    report = Report.read(path)
    with progress(report.title, total=len(report.makers)) as tick:
        edition = report.run(on=on, widen=widen, tick=tick)
    _finish(edition, out, as_json=as_json)


@app.command("show")
def show(path: File, *, on: On = None, out: Out = None, as_json: Json = False) -> None:
    """Show the answers of a period that was run, or write them as files; free."""
    from mosha.reports import Report  # noqa: PLC0415

    _finish(Report.read(path).show(on=on), out, as_json=as_json)


def _finish(edition: Edition, out: list[Path] | None, *, as_json: bool) -> None:
    written = [edition.save(place) for place in out or []]
    if as_json:
        write_json(edition.to_dict() | {"files": [str(place) for place in written]})
        return
    if not written:
        typer.echo(edition.to_markdown())
    for place in written:
        typer.echo(say("cli.report_written", path=str(place)))
