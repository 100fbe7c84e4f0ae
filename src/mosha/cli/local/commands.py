"""`mosha local`: surveys in files and pipes."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.local.collect import Source, count, csv_of, to_plain
from mosha.cli.local.files import hold, read, write
from mosha.cli.terminal import Json, console, number, write_json
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import say

if TYPE_CHECKING:
    from mosha.local import Collector, Survey

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Private before it leaves the device: surveys, reports, estimates.")

_OUTSIDE = "cli.outside_domain"

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
    texts: Annotated[int | None, typer.Option("--texts", help="Ask which texts of this length are popular.")] = None,
    alphabet: Annotated[str | None, typer.Option("--alphabet", help="The characters of these texts.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the declaration to this file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that holds something else.")] = False,
    as_json: Json = False,
) -> None:
    """Declare a survey: one JSON document that devices and collectors share."""
    if texts is not None or alphabet is not None:
        wrong = values or other or protocol or between or mean or distribution
        survey = _declare_texts(texts, alphabet, epsilon, alone=not wrong)
    else:
        survey = _declare_survey(values or [], epsilon, other, protocol, between, mean=mean, distribution=distribution)
    text = survey.to_json()
    if out is not None:
        _write_new(out, text.encode() + b"\n", force=force)
    if out is None or as_json:
        write_json(json.loads(text)) if as_json else typer.echo(text)
        return
    typer.echo(
        say(
            "cli.declared_survey", kind=survey.kind, bytes=survey.bytes_per_report, epsilon=f"{epsilon:g}", out=str(out)
        )
    )


def _declare_texts(longest: int | None, alphabet: str | None, epsilon: float, *, alone: bool) -> Survey:
    from mosha import local  # noqa: PLC0415  (other commands need none of it)

    if longest is None or not alone:
        raise InvalidParameter("cli.survey_of_texts", parameter="--texts")
    return local.HeavyHitters(longest=longest, alphabet=alphabet, epsilon=epsilon)


def _write_new(out: Path, data: bytes, *, force: bool) -> None:
    """Reports that are under way name the survey they answer: its declaration is not lost by mistake."""
    if out.is_file() and not force and read(out).strip() != data.strip():
        raise InvalidParameter("cli.other_content", path=str(out))
    write(out, data)


def _declare_survey(
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
        if between is None or values or mean == distribution or other is not None or protocol is not None:
            raise InvalidParameter("cli.survey_of_a_number", parameter="--between")
        return (local.Mean if mean else local.Distribution)(between=between, epsilon=epsilon)
    if between is not None:
        raise InvalidParameter("cli.between_without_number", parameter="--between")
    domain: Any = values
    if len(values) == 1 and values[0].isdecimal():
        domain = range(_read_whole(values[0], "cli.too_many_values"))
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
        raise DataError("cli.input_not_utf8") from None
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
    if survey.kind == "heavy_hitters":
        return _answers if isinstance(survey.to_dict()["alphabet"], list) else str
    values = getattr(survey, "values", ())
    if isinstance(values, range):
        return lambda text: _below(len(values), text)
    labels = {json.dumps(label): label for label in values if not isinstance(label, str)}
    labels |= {label: label for label in values if isinstance(label, str)}  # a text that reads like a number is itself
    return lambda text: _label(labels, text, other=getattr(survey, "other", None))


def _label(labels: dict[str, object], text: str, *, other: object) -> Any:
    if other is None and text not in labels:
        raise InvalidParameter("cli.outside_domain_declare_other")
    return labels.get(text, text)


def _below(size: int, text: str) -> int:
    value = _read_whole(text, _OUTSIDE)
    if value >= size:
        raise InvalidParameter(_OUTSIDE)
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("cli.not_a_number") from None


def _read_whole(text: str, code: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise InvalidParameter(code)
    return int(text)


def _answers(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter("cli.several_questions") from None


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
    table: Annotated[Path | None, typer.Option("--table", help="Write the estimate to this CSV file.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw the estimate into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Count reports and estimate; what is not a report of the survey is counted as rejected."""
    asked = _read_survey(survey)
    for option, given in (("--table", table), ("--plot", plot)):
        if given is not None and asked.kind == "several":
            raise InvalidParameter("cli.table_of_several", parameter=option)
    if plot is not None and asked.kind == "mean":
        raise InvalidParameter("cli.picture_of_a_number", parameter="--plot")
    sources = [Source.of(path, read(path)) for path in files] if files else [Source(sys.stdin.buffer.read(), None)]
    with nullcontext() if state is None else hold(state.resolve()):
        collector, known = _collect_sources(asked, sources, None if state is None else state.resolve())
    estimate = None if state is not None and not collector.has_enough else collector.estimate()
    if table is not None and estimate is not None:
        write(table, csv_of(estimate))
    if plot is not None and estimate is not None:
        _save_picture(estimate, plot)
    _tell(collector, estimate, known, as_json=as_json)


def _save_picture(found: Any, place: Path) -> None:
    figure = found.plot()
    try:
        figure.savefig(place)
    except (OSError, ValueError):
        raise InvalidParameter("cli.picture_name", parameter="--plot") from None


def _collect_sources(survey: Survey, sources: list[Source], state: Path | None) -> tuple[Collector, int]:
    """The collector with all that was stored and all that is new, stored again; and the lines that it knew."""
    from mosha.local import Collector  # noqa: PLC0415  (the device's commands need no NumPy)

    stored = state is not None and state.exists()
    collector = Collector.from_bytes(survey, read(state)) if stored and state is not None else survey.collector()
    known = sum(count(collector, source, goes_on=state is not None) for source in sources)
    if state is not None:
        write(state, collector.to_bytes())
    return collector, known


def _tell(collector: Collector, estimate: object, known: int, *, as_json: bool) -> None:
    from mosha.local.protocols.randomizer import FEWEST  # noqa: PLC0415

    shown = None if estimate is None else to_plain(estimate)
    if as_json:
        counted = {"survey": collector.survey.id.hex(), "accepted": collector.accepted, "rejected": collector.rejected}
        write_json(counted | {"known": known, "needed": FEWEST, "estimate": shown})
        return
    console().print(
        say("cli.known_from_before", summary=collector.summary, known=known) if known else collector.summary
    )
    if shown == []:
        console().print(say("cli.no_text_stands_out"))
    if shown is None:
        each = "_each" if collector.survey.kind == "several" else ""
        console().print(say(f"cli.more_reports_needed{each}", accepted=collector.accepted, needed=FEWEST))
        return
    questions = shown if collector.survey.kind == "several" else {"": shown}
    for question, told in questions.items():
        for row in told if isinstance(told, list) else [told]:
            cells = "  ".join(f"{key} {number(v) if isinstance(v, float) else v}" for key, v in row.items())
            console().print(f"{question}: {cells}" if question else cells)


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
        _save_picture(found, plot)
    if as_json:
        write_json({"people": people, "size": size, "epsilon": epsilon, "delta": delta, "models": found.table()})
        return
    from rich.table import Table  # noqa: PLC0415  (slow to load)

    shown = Table(title=found.title)
    for head in ("model", "trusts", "deviation", "simulated", "runs", "how"):
        shown.add_column(say(f"local.head_{head}"))
    for model in found.models:
        name, trusts, how = model.describe()
        shown.add_row(name, trusts, number(model.deviation), number(model.simulated), f"{model.runs:,}", how)
    console().print(shown)


def _read_survey(path: Path) -> Survey:
    from mosha.local.survey import Survey  # noqa: PLC0415

    return Survey.from_json(read(path))
