"""One `protect` for everything that can be protected: tables, and graphs if the unit is an edge or a vertex."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, overload

from mosha.core.account import Account
from mosha.core.names.calls import explain_wrong_calls
from mosha.core.unit import Edge, Node, Person, Row, Unit

if TYPE_CHECKING:
    from mosha.graphs import ProtectedGraph
    from mosha.tables import Table

__all__ = ["protect"]


@overload
def protect(
    source: object, *, unit: Edge | Node, account: Account | None = None, **options: object
) -> ProtectedGraph: ...


@overload
def protect(
    source: object, *, unit: Row | Person | None = None, account: Account | None = None, **options: object
) -> Table: ...


@explain_wrong_calls
def protect(
    source: object, *, unit: Unit | None = None, account: Account | None = None, **options: object
) -> Table | ProtectedGraph:
    """Put a table or a graph behind frosted glass; the unit says which of them it is.

    Args:
        source: a table (`mosha.tables.protect`), or with `unit=Edge()` or `Node(...)` a graph (`mosha.graphs.protect`).
        unit: whose presence is hidden: `Row()` or `Person(column)` for a table, `Edge()` or `Node(max_degree=...)` for
            a graph. For a table it may be left out if the declaration says it.
        account: what pays for releases. Without one a question can be planned and forecast, and `release` is refused.
        options: as `mosha.tables.protect` (schema=..., table=...) and `mosha.graphs.protect` (vertices=..., ...) take.

    >>> from mosha.core.unit import Edge
    >>> protect([(0, 1), (1, 2)], unit=Edge(), vertices=10).edges().forecast(epsilon=1)
    3.0
    """
    if isinstance(unit, Edge | Node):
        from mosha import graphs  # noqa: PLC0415  (loaded when it is asked for)

        ask: Callable[..., Table | ProtectedGraph] = graphs.protect
    else:
        from mosha import tables  # noqa: PLC0415

        ask = tables.protect
    return ask(source, unit=unit, account=account, **options)
