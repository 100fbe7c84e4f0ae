"""What a fit leaves: the model, what it was fitted to, and the second look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mosha.connect.language.expression import Expression
from mosha.core.release import Receipt
from mosha.core.unit import Unit
from mosha.mechanisms.residuals.residuals import Measured
from mosha.synth.measuring.columns import CodedColumn
from mosha.synth.modelling.design import Design
from mosha.synth.modelling.model import Model

__all__ = ["Fitted"]


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
