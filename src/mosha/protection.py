"""One `protect` for everything that can be protected: tables, and graphs if the unit is an edge or a vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from mosha.core.account import Account
from mosha.core.unit import Edge, Node, Unit

if TYPE_CHECKING:
    from mosha.graphs import ProtectedGraph
    from mosha.tables import Table

__all__ = ["protect"]


@overload
def protect(source: object, *, unit: Edge | Node, account: Account | None = None, **options: Any) -> ProtectedGraph: ...


@overload
def protect(source: object, *, unit: Unit | None = None, account: Account | None = None, **options: Any) -> Table: ...


def protect(
    source: object, *, unit: Unit | None = None, account: Account | None = None, **options: Any
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
        from mosha.graphs import protect as protect_graph  # noqa: PLC0415  (loaded when it is asked for)

        return protect_graph(source, unit=unit, account=account, **options)
    from mosha.tables import protect as protect_table  # noqa: PLC0415

    return protect_table(source, unit=unit, account=account, **options)
