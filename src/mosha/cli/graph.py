"""`mosha graph`: private statistics and synthetic graphs of an edge list, paid from a ledger."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.cli.terminal import Json, console, write_json
from mosha.core.errors import DataError, InvalidParameter
from mosha.core.language import say
from mosha.core.number import positive, positive_integer, probability, strict_probability
from mosha.core.options import SyntheticGraph, choose
from mosha.core.unit import Edge, Node, Unit

if TYPE_CHECKING:
    from mosha.graphs import Answer, ProtectedGraph, Question

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Statistics and synthetic graphs, when an edge or a vertex is hidden.")

File = Annotated[str, typer.Argument(help="An edge list: txt, csv, Parquet, or txt.gz and csv.gz.")]
Vertices = Annotated[int, typer.Option(help="How many vertices there are (public): 0, ..., n - 1.")]
Columns = Annotated[
    str | None, typer.Option(help="FIRST,SECOND: the columns of ends of a csv or Parquet file with more than two.")
]
Hidden = Annotated[str, typer.Option("--unit", help="What is hidden: 'edge' or 'node'.")]
MaxDegree = Annotated[
    int | None, typer.Option(help="At node level: bound degrees by this; chosen privately otherwise.")
]
Epsilon = Annotated[float, typer.Option(help="The price of this answer.")]
Delta = Annotated[float, typer.Option(help="Allows smooth sensitivity for triangles and stars.")]
LedgerPlace = Annotated[str | None, typer.Option("--ledger", help="The ledger that pays; FILE.privacy.db by default.")]
AccountName = Annotated[str, typer.Option("--account", help="The account that pays, opened if there is none.")]
LimitEpsilon = Annotated[float, typer.Option(help="The limit of an account that is opened here.")]
LimitDelta = Annotated[float, typer.Option(help="The delta of an account that is opened here.")]
Key = Annotated[str | None, typer.Option(help="Makes a retry free: the same key finds the same answer.")]

STATISTICS = (
    "edges",
    "density",
    "average-degree",
    "maximum-degree",
    "degree-sequence",
    "degree-histogram",
    "degree-distribution",
    "triangles",
    "stars",
    "clustering",
    "components",
    "seeds",
    "communities",
)


MOST_VERTICES = 2**31 - 2
SHOWN = 12
"""Numbers of a list that fit a line."""

PROGRAMMES = ("triangles", "clustering", "components")


def _unit(name: str, max_degree: int | None) -> Unit:
    if name not in {"edge", "node"}:
        raise InvalidParameter("core.unknown_option", parameter="--unit", options=["edge", "node"])
    if name == "node":
        return Node(max_degree=None if max_degree is None else positive_integer("--max-degree", max_degree))
    if max_degree is not None:
        raise InvalidParameter("cli.goes_with", parameter="--max-degree", others=["--unit node"])
    return Edge()


def _check(file: str, vertices: int, *, epsilon: float, limit_epsilon: float, limit_delta: float) -> None:
    """Everything that can be refused before a ledger is opened, in the words of the command."""
    if not 0 <= vertices <= MOST_VERTICES:
        raise InvalidParameter("cli.vertices_out_of_range", parameter="--vertices", most=MOST_VERTICES, value=vertices)
    positive("--epsilon", epsilon)
    positive("--limit-epsilon", limit_epsilon)
    probability("--limit-delta", limit_delta)
    if not Path(file).is_file():
        raise DataError("cli.graph_not_readable", parameter="FILE", spent="nothing")


def _ends(file: str, columns: str | None) -> tuple[str, str] | None:
    """The two names in --columns."""
    if columns is None:
        return None
    first, comma, second = columns.partition(",")
    if not (first and comma and second) or "," in second:
        raise InvalidParameter("cli.two_columns", parameter="--columns")
    if not file.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise InvalidParameter("cli.columns_of_a_table", parameter="--columns")
    return first, second


def _check_output(file: str, output: Path) -> None:
    """A graph that was paid for has somewhere to go."""
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise InvalidParameter("cli.output_no_file", parameter="OUTPUT", spent="nothing")
    if output.resolve() == Path(file).resolve():
        raise InvalidParameter("cli.output_is_input", parameter="OUTPUT", spent="nothing")


def _check_number(statistic: str, k: int | None, vertices: int, unit: Unit) -> int:
    """How many leaves or seeds: 2 unless told, and only where there are any."""
    if statistic not in STATISTICS:
        raise InvalidParameter("core.unknown_option", parameter="STATISTIC", options=list(STATISTICS))
    if k is None:
        return 2
    if statistic not in {"stars", "seeds"}:
        raise InvalidParameter("cli.goes_with", parameter="--k", others=["stars", "seeds"])
    if positive_integer("--k", k) >= vertices and isinstance(unit, Edge):
        raise InvalidParameter("cli.k_not_below_vertices", parameter="--k")
    return k


def _question(graph: ProtectedGraph, statistic: str, k: int) -> Question:
    if statistic in {"stars", "seeds"}:
        return graph.stars(k) if statistic == "stars" else graph.seeds(k)
    asked: Question = getattr(graph, statistic.replace("-", "_"))()
    return asked


@app.command()
def ask(
    file: File,
    statistic: Annotated[str, typer.Argument(help=f"One of {', '.join(STATISTICS)}.")],
    *,
    vertices: Vertices,
    epsilon: Epsilon,
    delta: Delta = 0.0,
    columns: Columns = None,
    unit: Hidden = "edge",
    max_degree: MaxDegree = None,
    k: Annotated[int | None, typer.Option("--k", help="The leaves of a star, or how many seeds; 2 otherwise.")] = None,
    confidence: Annotated[float, typer.Option(help="How often the noise stays within the error bar.")] = 0.95,
    ledger: LedgerPlace = None,
    account: AccountName = "graph",
    limit_epsilon: LimitEpsilon = 3.0,
    limit_delta: LimitDelta = 1e-6,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Release one statistic of a graph, with its error bar and what is left of the budget."""
    import mosha  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415

    whose = _unit(unit, max_degree)
    _check(file, vertices, epsilon=epsilon, limit_epsilon=limit_epsilon, limit_delta=limit_delta)
    probability("--delta", delta)
    strict_probability("--confidence", confidence)
    number = _check_number(statistic, k, vertices, whose)
    ends = _ends(file, columns)
    with closing(mosha.Ledger(ledger or f"{file}.privacy.db", key=find_key_file())) as book:
        paying = book.account(account, unit=whose, epsilon=limit_epsilon, delta=limit_delta)
        graph = mosha.graphs.protect(file, unit=whose, account=paying, vertices=vertices, columns=ends)
        question = _question(graph, statistic, number)
        has_bar = question.measurement(epsilon=epsilon, delta=delta).error is not None
        if isinstance(whose, Node) and statistic in PROGRAMMES:
            typer.echo(say("cli.programmes_take_time"), err=True)
        answer = question.release(epsilon=epsilon, delta=delta, key=key)
    bar, why = _bar(answer, confidence) if has_bar else (None, None)
    document = {"value": _to_json(answer.value), "error": bar, "receipt": answer.receipt.to_dict()}
    if as_json:
        write_json(document)
        return
    typer.echo(f"{statistic}: {_format_value(document['value'], bar)}")
    if why is not None:
        typer.echo(why)
    console().print(str(answer.receipt), markup=False)


@app.command("synthesise", hidden=True, deprecated=True)
@app.command()
def synthesize(
    file: File,
    output: Annotated[Path, typer.Argument(help="Where the synthetic edge list is written.")],
    *,
    vertices: Vertices,
    epsilon: Epsilon,
    columns: Columns = None,
    kind: Annotated[str, typer.Option(help="'clustered', 'communities' or 'filter'.")] = "clustered",
    ledger: LedgerPlace = None,
    account: AccountName = "graph",
    limit_epsilon: LimitEpsilon = 3.0,
    limit_delta: LimitDelta = 1e-6,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Write a synthetic graph that agrees with private numbers about the original."""
    import mosha  # noqa: PLC0415  (a command that fails early loads nothing)
    from mosha.ledger.storage.key import find_key_file  # noqa: PLC0415

    _check(file, vertices, epsilon=epsilon, limit_epsilon=limit_epsilon, limit_delta=limit_delta)
    _check_output(file, output)
    ends = _ends(file, columns)
    with closing(mosha.Ledger(ledger or f"{file}.privacy.db", key=find_key_file())) as book:
        paying = book.account(account, unit=Edge(), epsilon=limit_epsilon, delta=limit_delta)
        graph = mosha.graphs.protect(file, unit=Edge(), account=paying, vertices=vertices, columns=ends)
        answer = graph.synthetic(choose("--kind", kind, SyntheticGraph)).release(epsilon=epsilon, key=key)
    output.write_text("".join(f"{a} {b}\n" for a, b in answer.value.tolist()), encoding="utf-8")
    if as_json:
        write_json({"edges": len(answer.value), "output": str(output), "receipt": answer.receipt.to_dict()})
    else:
        console().print(
            say("cli.edges_in", edges=len(answer.value), output=str(output)) + f"\n{answer.receipt}", markup=False
        )


def _format_value(value: object, bar: object) -> str:
    """A number or a list, some of it to a line, with its bar where that is one number."""
    after = f" ± {bar}" if isinstance(bar, int | float) else ""
    if not isinstance(value, list):
        return f"{value}{after}"
    words = [f"{part:.6g}" if isinstance(part, float) else str(part) for part in value]
    if len(words) <= SHOWN:
        return " ".join(words) + after
    lines = [" ".join(words[start : start + SHOWN]) for start in range(0, len(words), SHOWN)]
    return "\n".join([f"{len(words)} numbers{after}", *lines])


def _bar(answer: Answer, confidence: float) -> tuple[Any, str | None]:
    """The error bar, or why there is none: the answer was paid for and is shown all the same."""
    try:
        return _to_json(answer.error(confidence)), None
    except InvalidParameter as refused:
        return None, str(refused)


def _to_json(value: object) -> Any:
    """Numbers and lists for JSON."""
    return value.tolist() if hasattr(value, "tolist") else value
