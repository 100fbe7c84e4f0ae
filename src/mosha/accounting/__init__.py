"""Prices: what an event costs, under every measure that is proved.

    epsilon, delta, bounds      the tight price of a composition that is fixed in advance, certified from above
    calibrate                   the least noise for a promise
    Odometer                    what a growing history costs so far, in constant time
    pure, advanced, concentrated, renyi, gaussian, tradeoff, shuffle    one measure each, in closed form
    rules                       what an account admits, step by step
    interop                     events of other libraries

Modules and names are loaded when they are first used; the numerical ones need NumPy, normal laws also SciPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosha.accounting.calibration import calibrate as calibrate
    from mosha.accounting.certified import bounds as bounds
    from mosha.accounting.certified import delta as delta
    from mosha.accounting.certified import epsilon as epsilon
    from mosha.accounting.odometer import Odometer as Odometer

_NAMES = {
    "Odometer": "mosha.accounting.odometer",
    "bounds": "mosha.accounting.certified",
    "calibrate": "mosha.accounting.calibration",
    "delta": "mosha.accounting.certified",
    "epsilon": "mosha.accounting.certified",
}
_MODULES = ("advanced", "concentrated", "gaussian", "interop", "pure", "renyi", "rules", "shuffle", "tradeoff")
__all__ = [*sorted(_NAMES), *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"mosha.accounting.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'mosha.accounting' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
