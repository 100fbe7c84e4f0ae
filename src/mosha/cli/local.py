"""`mosha local`: surveys in files and pipes."""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.terminal import Json, console, number, write_json
from mosha.core.errors import DataError, InvalidParameter

if TYPE_CHECKING:
    from mosha.local import Survey

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Private before it leaves the device: surveys, reports, estimates.")

SurveyFile = Annotated[Path, typer.Argument(help="The declaration of the survey, as `declare` wrote it.")]


@app.command()
def declare(
    values: Annotated[
        list[str] | None, typer.Argument(help="The values of a survey of categories; one whole number: that many.")
    ] = None,
    *,
    epsilon: Annotated[float, typer.Option("--epsilon", help="What one report may reveal.")],
    other: Annotated[str | None, typer.Option("--other", help="A label for everything outside the values.")] = None,
    mean: Annotated[bool, typer.Option("--mean", help="Ask for the mean of a number.")] = False,
    distribution: Annotated[bool, typer.Option("--distribution", help="Ask how a number is distributed.")] = False,
    between: Annotated[
        tuple[float, float] | None, typer.Option("--between", help="The range of the number: low high.")
    ] = None,
    protocol: Annotated[str | None, typer.Option("--protocol", help="How to report categories, by name.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the declaration to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Declare a survey: one JSON document that devices and collectors share."""
    survey = _declared(values or [], epsilon, other, protocol, between, mean=mean, distribution=distribution)
    text = survey.to_json()
    if out is not None:
        _write(out, text.encode() + b"\n")
    if out is None or as_json:
        write_json(json.loads(text)) if as_json else typer.echo(text)
        return
    typer.echo(f"{survey.kind}: {survey.bytes_per_report} bytes a report, epsilon {epsilon:g}; written to {out}")


def _declared(
    values: list[str],
    epsilon: float,
    other: str | None,
    protocol: str | None,
    between: tuple[float, float] | None,
    *,
    mean: bool,
    distribution: bool,
) -> Survey:
    from mosha import local  # noqa: PLC0415  (other commands need none of it)

    if mean or distribution:
        if between is None or values or mean == distribution:
            raise InvalidParameter("a survey of a number takes --between LOW HIGH, one of --mean and --distribution.")
        return (local.Mean if mean else local.Distribution)(between=between, epsilon=epsilon)
    domain: Any = values
    if len(values) == 1 and values[0].isdecimal():
        domain = range(_whole(values[0], "a survey cannot have so many values."))
    return local.Frequency(domain, epsilon=epsilon, other=other, protocol=protocol)


@app.command()
def report(
    survey: SurveyFile,
    value: Annotated[str | None, typer.Argument(help="The value; without it, one a line from standard input.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Report a value, or one for each line of standard input: base64, one report a line."""
    asked = _read_survey(survey)
    try:
        given = [value] if value is not None else [line.rstrip("\r\n") for line in sys.stdin]
    except UnicodeDecodeError:
        raise DataError("standard input is not text in UTF-8: nothing was drawn.") from None
    read = _reader(asked)
    reports = [base64.b64encode(asked.report(own)).decode() for own in [read(text) for text in given]]
    if as_json:
        write_json({"survey": asked.id.hex(), "reports": reports})
    else:
        typer.echo("\n".join(reports))


def _reader(survey: Survey) -> Callable[[str], Any]:
    """How the text of a line is read: a number, a label of the survey, or JSON where there are several questions."""
    if survey.kind in ("mean", "distribution"):
        return _number
    if survey.kind == "several":
        return _answers
    values = getattr(survey, "values", ())
    if isinstance(values, range):
        return lambda text: _whole(text, "this value is outside the domain of the survey: nothing was drawn.")
    labels = {json.dumps(label): label for label in values if not isinstance(label, str)}
    labels |= {label: label for label in values if isinstance(label, str)}  # a text that reads like a number is itself
    return lambda text: labels.get(text, text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("the survey asks for a number: nothing was drawn.") from None


def _whole(text: str, otherwise: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidParameter(otherwise)
    return int(text)


def _answers(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter(
            'the survey asks several questions: give JSON like {"question": answer}. Nothing was drawn.'
        ) from None


@app.command()
def collect(
    survey: SurveyFile,
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of reports (base64 lines or batches); else standard input.")
    ] = None,
    *,
    state: Annotated[
        Path | None, typer.Option("--state", help="Go on from the state in this file, and store it there.")
    ] = None,
    table: Annotated[Path | None, typer.Option("--table", help="Write the shares to this CSV file.")] = None,
    as_json: Json = False,
) -> None:
    """Count reports and estimate; what is not a report of the survey is counted as rejected."""
    from mosha.local import Collector  # noqa: PLC0415  (the device's commands need no NumPy)

    asked = _read_survey(survey)
    known = state is not None and state.exists()
    collector = Collector.from_bytes(asked, _read(state)) if known and state is not None else asked.collector()
    sources = [_read(path) for path in files] if files else [sys.stdin.buffer.read()]
    for data in sources:
        if data.startswith(b"MOSHA"):
            collector.add(data)
        else:
            name = hashlib.sha256(data).digest()[:16]
            collector.add([_decoded(line) for line in data.splitlines() if line], delivery=name)
    if state is not None:
        _write(state, collector.to_bytes())
    counted = {"survey": asked.id.hex(), "accepted": collector.accepted, "rejected": collector.rejected}
    estimate = _plain(collector.estimate())
    if table is not None and isinstance(estimate, list):
        text = io.StringIO()
        writer = csv.DictWriter(text, ["value", "share", "raw", "error"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(estimate)
        _write(table, text.getvalue().encode())
    if as_json:
        write_json(counted | {"estimate": estimate})
        return
    console().print(f"{collector.accepted} reports counted, {sum(collector.rejected.values())} rejected")
    for row in estimate if isinstance(estimate, list) else [estimate]:
        console().print("  ".join(f"{key} {number(v) if isinstance(v, float) else v}" for key, v in row.items()))


def _plain(estimate: Any) -> Any:
    """An estimate as plain data."""
    if isinstance(estimate, dict):
        return {name: _plain(part) for name, part in estimate.items()}
    if hasattr(estimate, "table"):
        return estimate.table()
    if hasattr(estimate, "quantile"):
        shares = (0.05, 0.25, 0.5, 0.75, 0.95)
        return {"mean": estimate.mean} | {f"quantile {share:g}": estimate.quantile(share) for share in shares}
    return {"mean": estimate.value, "error": estimate.error(), "reports": estimate.reports}


@app.command()
def compare(
    people: Annotated[int, typer.Argument(help="How many people report.")],
    size: Annotated[int, typer.Argument(help="How many values there are.")],
    epsilon: Annotated[float, typer.Argument(help="What is promised to each of them.")],
    *,
    delta: Annotated[float, typer.Option("--delta", help="The delta of the shuffle model.")] = 1e-6,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the comparison into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Compare the error of the central, the shuffle and the local model: what trust is worth."""
    from mosha.local import compare as compared  # noqa: PLC0415

    found = compared(people, size, epsilon, delta=delta)
    if plot is not None:
        figure = found.plot()
        try:
            figure.savefig(plot)
        except (OSError, ValueError):
            raise InvalidParameter("the picture could not be written: name a .png, .svg or .pdf file.") from None
    if as_json:
        write_json({"people": people, "size": size, "epsilon": epsilon, "delta": delta, "models": found.table()})
        return
    from rich.table import Table  # noqa: PLC0415  (slow to load)

    shown = Table(title=f"{people:,} people, {size:,} values, epsilon {epsilon:g}, delta {delta:g}")
    for head in ("model", "trusts", "± of a count", "simulated", "how"):
        shown.add_column(head)
    for model in found.models:
        shown.add_row(model.name, model.trusts, number(model.deviation), number(model.simulated), model.how)
    console().print(shown)


def _read_survey(path: Path) -> Survey:
    from mosha.local.survey import Survey  # noqa: PLC0415

    return Survey.from_json(_read(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def _write(path: Path, data: bytes) -> None:
    """All of it or nothing: what stood there stays until the new file is complete."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(data)
            return
        new.write_bytes(data)
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise DataError(f"{str(path)!r} cannot be written: {error.strerror}.") from None


def _decoded(line: bytes) -> bytes:
    """The report of a line, or nothing, which the collector counts as malformed."""
    try:
        return base64.b64decode(line.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b""
