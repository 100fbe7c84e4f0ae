"""`mosha compose`: what many questions cost together, by four rules side by side."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mosha.cli.terminal import Json, console, number, write_json
from mosha.core.language import say

__all__ = ["compose"]


def compose(
    *,
    epsilon: Annotated[float, typer.Option(help="The epsilon of one question.")],
    delta: Annotated[float, typer.Option(help="The delta of all of them together.")],
    questions: Annotated[list[int] | None, typer.Option(help="How many questions; repeat it for several rows.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the four curves into this file (.svg, .png or .pdf).")] = None,
    as_json: Json = False,
) -> None:
    """Compare basic, advanced, Renyi and tight composition of equal questions."""
    from mosha.classroom.windows import compare_compositions  # noqa: PLC0415  (a command that fails early loads nothing)

    rows = compare_compositions(epsilon=epsilon, delta=delta, questions=questions or [1, 10, 100, 1000])
    if plot is not None:
        from mosha.classroom.curves import draw_compositions  # noqa: PLC0415

        draw_compositions(rows, epsilon=epsilon, delta=delta).savefig(plot)
    if as_json:
        write_json({"epsilon": epsilon, "delta": delta, "rows": [asdict(row) for row in rows]})
        return
    from rich.table import Table  # noqa: PLC0415

    table = Table()
    for column in ("questions", "basic", "advanced", "renyi", "order", "tight"):
        table.add_column(say(f"classroom.column_{column}"), justify="right")
    for row in rows:
        shown = (row.basic, row.advanced, row.renyi, row.order, row.tight)
        table.add_row(str(row.questions), *(number(value) for value in shown))
    console().print(table)
