"""How commands speak: JSON for programs, tables and sentences for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosha.core.language import say

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Json", "console", "number", "percent", "progress", "write_json"]

UNBROKEN = 10_000  # columns of what is no terminal: a file or a pipe wraps nothing

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")]


def write_json(document: object) -> None:
    """One JSON document on standard output; a number that is not finite is null."""
    typer.echo(json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: object) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console() -> Console:
    """Where people read; plain, and with lines as long as they are, when it is no terminal."""
    from rich.console import Console  # noqa: PLC0415  (slow to load, and --json needs none of it)

    width = None if sys.stdout.isatty() else UNBROKEN
    return Console(highlight=False, soft_wrap=False, markup=False, emoji=False, width=width)  # names as they are


@contextmanager
def progress(what: str, *, total: int) -> Iterator[Callable[[], None]]:
    """A bar with the time left, on standard error and only where somebody watches; call what it gives at each step."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415

    watched = Console(stderr=True)
    with Progress(console=watched, transient=True, disable=not watched.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def number(value: float) -> str:
    """A number for people: four digits.

    >>> number(2.718281828), number(1e-6), number(22026.47), number(math.inf)
    ('2.718', '1e-06', '22,026', 'no bound')
    """
    if math.isinf(value):
        return say("cli.no_bound")
    if abs(value) >= 1e15:
        return f"{value:.3e}"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def percent(share: float) -> str:
    """A share in percent, precise near both ends.

    >>> percent(0.4621), percent(0.0266), percent(1e-7), percent(0.99999)
    ('46.2%', '2.66%', '1e-05%', '99.999%')
    """
    if 0.9995 < share < 1:
        return f"{100 - float(f'{100 * (1 - share):.2g}'):.10g}%"
    return f"{100 * share:.3g}%"
