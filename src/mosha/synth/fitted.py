"""What a fit leaves: the model, what it was fitted to, and the second look; and designs as a book keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mosha.connect.language.expression import Expression
from mosha.core.release import Receipt
from mosha.core.unit import Unit
from mosha.synth.design import Design, Method, axes_of
from mosha.synth.measuring.columns import CodedColumn
from mosha.synth.measuring.residuals import Measured, Term
from mosha.synth.model import Model

__all__ = ["Fitted", "describe_design", "read_design"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Fitted:
    """The public parts of a synthetic table: all of them follow from what was paid for."""

    columns: tuple[CodedColumn, ...]
    derived: Mapping[str, Expression]
    never: tuple[Expression, ...]
    count_of_rows: int | None
    model: Model
    measured: Measured
    look: Measured
    design: Design
    receipt: Receipt | None
    unit: Unit

    @property
    def method(self) -> str:
        """What the rule chose: independent, tree, selected pairs or all pairs."""
        return self.design.method

    @property
    def rows(self) -> int:
        """How many rows the table has: the caller's number, or the noisy one."""
        return self.count_of_rows if self.count_of_rows is not None else max(1, round(self.model.total))


def describe_design(design: Design) -> dict[str, Any]:
    """A design as a book keeps it; its groups follow from noisy numbers, and are kept so that none is computed anew."""
    return {
        "groups": list(design.groups),
        "fine": list(design.fine),
        "terms": [[list(pair) for pair in term] for term in design.shares],
        "shares": list(design.shares.values()),
        "method": design.method,
    }


def read_design(columns: Sequence[CodedColumn], plain: Mapping[str, Any]) -> Design:
    """The design that `describe_design` wrote down."""
    groups, fine = (tuple(np.asarray(g, np.int64) for g in plain[name]) for name in ("groups", "fine"))
    terms: list[Term] = [tuple((int(c), int(v)) for c, v in term) for term in plain["terms"]]
    shares = dict(zip(terms, (float(share) for share in plain["shares"]), strict=True))
    return Design(axes_of(columns, groups, fine), shares, groups, fine, cast("Method", str(plain["method"])))
