"""`mosha audit`: attack mechanisms and published tables."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.terminal import Json, console, number, progress, write_json
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.language import say

if TYPE_CHECKING:
    from mosha.audit.reporting.verdict import Verdict

__all__ = ["app"]

VERIFICATION_FAILED = 3

app = typer.Typer(help="Attack mechanisms: do they leak more than they claim?", no_args_is_help=True)

Runs = Annotated[int, typer.Option("--runs", help="How often each of the two neighbors is answered.")]
Confidence = Annotated[
    float, typer.Option("--confidence", help="The confidence that nothing is called broken that keeps its claim.")
]
Page = Annotated[Path | None, typer.Option("--html", help="Write the report to this file, as one page.")]


@app.command("all")
def attack_everything(
    *,
    runs: Runs = 20_000,
    seconds: Annotated[
        float, typer.Option("--seconds", help="About the most CPU time for one mechanism: slow ones get fewer runs.")
    ] = 5.0,
    confidence: Confidence = 0.999,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Attack this kind of data: tables, streams, ...; repeat it.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Attack entries whose name holds this text.")] = None,
    module: Annotated[
        list[str] | None, typer.Option("--module", help="Import this module first; it registers mechanisms.")
    ] = None,
    html: Page = None,
    as_json: Json = False,
) -> None:
    """Attack every registered mechanism. Exit code 3 if one is broken."""
    from rich.cells import set_cell_size  # noqa: PLC0415  (a command that fails early loads nothing)

    from mosha.audit.registry import attack_all, missing  # noqa: PLC0415

    chosen = _entries(only, module, kind)
    verdicts = []
    with progress(say("cli.attacking"), total=len(chosen)) as advance:
        for verdict in attack_all(chosen, runs=runs, confidence=confidence, seconds=seconds):
            verdicts.append(verdict)
            advance()
            if not as_json:
                shown = say(
                    "cli.attacked_one",
                    lower=number(verdict.lower),
                    claim=verdict.claim.describe(),
                    runs=f"{verdict.runs:,}",
                )
                outcome = set_cell_size(verdict.outcome.describe(), 10)
                console().print(f"{outcome}  {verdict.name}: {shown}", markup=False)
    if not as_json:
        for left_out, package in missing().items():
            console().print(say("cli.not_attacked", kind=left_out, package=package), markup=False)
    _finish(verdicts, html, as_json=as_json, told=True)


@app.command("list")
def list_entries(
    *,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Entries of this kind of data; repeat it.")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Entries whose name holds this text.")] = None,
    module: Annotated[
        list[str] | None, typer.Option("--module", help="Import this module first; it registers mechanisms.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List what `mosha audit all` attacks, and on which neighbors."""
    found = [
        {"name": entry.name, "kind": entry.kind, "neighbors": [proposal.why for proposal in entry.proposals]}
        for entry in _entries(only, module, kind)
    ]
    if as_json:
        write_json(found)
        return
    for entry in found:
        console().print(
            say(
                "cli.pairs_of_neighbors",
                kind=f"{entry['kind']:<12}",
                name=entry["name"],
                pairs=len(entry["neighbors"]),
            ),
            markup=False,
        )


@app.command("accounting")
def attack_accountant(
    *, runs: Runs = 200_000, confidence: Confidence = 0.999, html: Page = None, as_json: Json = False
) -> None:
    """Hold Mosha's own prices against mechanisms that are written down. Exit code 3 if one is too low."""
    from mosha.audit import audit_accountant  # noqa: PLC0415

    report = audit_accountant(runs=runs, confidence=confidence)
    if html is not None:
        report.save(html.with_suffix(".html"))
    if as_json:
        write_json(report.to_dict())
    else:
        console().print(str(report), markup=False)
    if report.broken:
        raise typer.Exit(VERIFICATION_FAILED)


@app.command("function")
def attack_function(
    target: Annotated[str, typer.Argument(help="The function, as module:name or file.py:name.")],
    first: Annotated[str, typer.Argument(help="One data set, as JSON.")],
    second: Annotated[str, typer.Argument(help="Its neighbor, as JSON.")],
    *,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The epsilon that it claims.")] = None,
    delta: Annotated[float, typer.Option("--delta", help="With --epsilon: it claims this delta.")] = 0.0,
    rho: Annotated[float | None, typer.Option("--rho", help="It claims this rho (zero-concentrated).")] = None,
    mu: Annotated[float | None, typer.Option("--mu", help="It claims this mu (Gaussian).")] = None,
    runs: Runs = 20_000,
    confidence: Confidence = 0.999,
    batch: Annotated[
        bool, typer.Option("--batch", help="The function takes (data, size) and gives that many answers.")
    ] = False,
    html: Page = None,
    as_json: Json = False,
) -> None:
    """Attack any Python function of one data set. Exit code 3 if its claim is broken."""
    from mosha.audit import attack  # noqa: PLC0415

    claim = _claim(epsilon, delta, rho, mu)
    function = _function(target)
    pair = (_data("the first data set", first), _data("the second data set", second))
    verdict = attack(function, neighbors=pair, claim=claim, runs=runs, confidence=confidence, batch=batch, name=target)
    _finish([verdict], html, as_json=as_json, told=False)


@app.command("table")
def attack_table(
    file: Annotated[Path, typer.Argument(help="A table with one row a person: CSV or Parquet.")],
    *,
    quasi: Annotated[list[str], typer.Option("--quasi", help="A column that outsiders may know; repeat it.")],
    sensitive: Annotated[str, typer.Option("--sensitive", help="The sensitive column, which nobody should learn.")],
    k: Annotated[int, typer.Option("--k", help="The class size to reach.")] = 5,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The price of private counts to compare with.")] = 1.0,
    width: Annotated[
        list[str] | None, typer.Option("--width", help="COLUMN=WIDTH: put numbers into intervals; repeat it.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="COLUMN=N: keep N characters of a text; repeat it.")
    ] = None,
    html: Page = None,
    as_json: Json = False,
) -> None:
    """Show what k-anonymity leaves open on a table, for its owner: nothing here is private."""
    from mosha.audit import compare  # noqa: PLC0415

    report = compare(
        _read(file),
        quasi=quasi,
        sensitive=sensitive,
        k=k,
        epsilon=epsilon,
        widths=_pairs("--width", width, float),
        keep=_pairs("--keep", keep, int),
    )
    if html is not None:
        report.save(html.with_suffix(".html"))
    if as_json:
        write_json(report.to_dict())
    else:
        console().print(str(report), markup=False)


def _entries(only: list[str] | None, modules: list[str] | None, kinds: list[str] | None) -> list[Any]:
    from mosha.audit.registry import entries  # noqa: PLC0415

    for name in modules or []:
        _module(name)
    every = entries()
    known = {entry.kind for entry in every}
    for kind in kinds or []:
        if kind not in known:
            raise InvalidParameter("cli.unknown_kind", parameter="--kind", kind=kind, kinds=sorted(known))
    found = [
        entry
        for entry in every
        if (not kinds or entry.kind in kinds) and (not only or any(text in entry.name for text in only))
    ]
    if not found:
        raise InvalidParameter("cli.no_such_entry", parameter="--only")
    return found


def _finish(verdicts: list[Verdict], html: Path | None, *, as_json: bool, told: bool) -> None:
    broken = [verdict for verdict in verdicts if verdict.broken]
    if html is not None:
        from mosha.audit.reporting.verdict import verdict_page  # noqa: PLC0415

        html.write_text(verdict_page(verdicts) + "\n", encoding="utf-8")
    if as_json:
        write_json({"broken": len(broken), "verdicts": [verdict.to_dict() for verdict in verdicts]})
    else:
        for verdict in broken if told else verdicts:
            console().print(str(verdict), markup=False)
        if told:
            console().print(say("cli.attacked_all", attacked=len(verdicts), broken=len(broken)), markup=False)
    if broken:
        raise typer.Exit(VERIFICATION_FAILED)


def _claim(epsilon: float | None, delta: float, rho: float | None, mu: float | None) -> Guarantee:
    if sum(value is not None for value in (epsilon, rho, mu)) != 1:
        raise InvalidParameter("cli.one_claim")
    if epsilon is not None:
        return Approx(epsilon, delta) if delta else Pure(epsilon)
    return ZeroConcentrated(rho) if rho is not None else Gaussian(mu if mu is not None else 0.0)


def _module(name: str) -> Any:
    """A module by name, or a file."""
    if not name.endswith(".py"):
        if (here := str(Path.cwd())) not in sys.path:  # as `python -m` would have it
            sys.path.append(here)
        try:
            return importlib.import_module(name)
        except ImportError:
            raise InvalidParameter("cli.no_module", module=name) from None
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    if spec is None or spec.loader is None or not Path(name).is_file():
        raise InvalidParameter("cli.no_file_to_import", path=name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _function(target: str) -> Callable[..., Any]:
    place, separator, name = target.rpartition(":")
    found = getattr(_module(place), name, None) if separator else None
    if not callable(found):
        raise InvalidParameter("cli.no_function", target=target)
    function: Callable[..., Any] = found
    return function


def _data(what: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidParameter("cli.not_json", parameter=what) from None


def _pairs(option: str, texts: list[str] | None, kind: Callable[[str], object]) -> dict[str, Any]:
    found = {}
    for text in texts or []:
        name, separator, value = text.rpartition("=")
        try:
            found[name] = kind(value)
        except ValueError:
            separator = ""
        if not separator or not name:
            raise InvalidParameter("cli.not_column_and_number", parameter=option)
    return found


def _read(file: Path) -> dict[str, Any]:
    """The columns of a file. It is the owner's own: errors may name it, never what it holds."""
    import duckdb  # noqa: PLC0415

    if not file.is_file():
        raise DataError("cli.no_file", path=str(file))
    try:
        with duckdb.connect(":memory:") as engine:
            reader = engine.read_parquet if file.suffix == ".parquet" else engine.read_csv
            columns: dict[str, Any] = dict(reader(str(file)).fetchnumpy())
    except duckdb.Error:
        raise DataError("cli.not_a_table", path=str(file)) from None
    return columns
