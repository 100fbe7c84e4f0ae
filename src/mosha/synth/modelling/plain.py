"""Designs as a book keeps them: plain data, so that no group is computed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from mosha.mechanisms.residuals.residuals import Term
from mosha.synth.measuring.columns import CodedColumn
from mosha.synth.modelling.design import Design, Method, axes_of

__all__ = ["describe_design", "read_design"]


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
