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

from typing import TYPE_CHECKING

from mosha.accounting import planned as planned  # the measures know plans from here
from mosha.core.names.lazy import loaded_when_used

if TYPE_CHECKING:
    from mosha.accounting.calibration import calibrate as calibrate
    from mosha.accounting.measures import advanced as advanced
    from mosha.accounting.measures import concentrated as concentrated
    from mosha.accounting.measures import gaussian as gaussian
    from mosha.accounting.measures import pure as pure
    from mosha.accounting.measures import renyi as renyi
    from mosha.accounting.measures import shuffle as shuffle
    from mosha.accounting.odometer import Odometer as Odometer
    from mosha.accounting.prices import bounds as bounds
    from mosha.accounting.prices import delta as delta
    from mosha.accounting.prices import epsilon as epsilon

_NAMES = {
    "Odometer": "odometer",
    "bounds": "prices",
    "calibrate": "calibration",
    "delta": "prices",
    "epsilon": "prices",
}
_MEASURES = ("advanced", "concentrated", "gaussian", "pure", "renyi", "shuffle")
_MODULES = {name: f"measures.{name}" for name in _MEASURES} | {name: name for name in ("interop", "rules", "tradeoff")}
__all__ = [*sorted(_NAMES), *_MODULES]  # noqa: PLE0604
__getattr__, __dir__ = loaded_when_used(__name__, _NAMES, _MODULES)
