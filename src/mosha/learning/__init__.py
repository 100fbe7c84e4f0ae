"""Learning: models trained with differential privacy, paid from the same ledger as everything else.

    DPSGD, DPFTRL               plans: frozen, priced and calibrated without any deep-learning library
    DPSGD.train                 a training: paid as a whole, one noisy gradient a step
    private                     the wrapping that users of Opacus know
    Adam, AdamW                 optimisers that take the noise out of the second moment
    without_batch_norm          a model without layers that mix examples

PyTorch (the extra `learning`) is loaded when a model is trained, not before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosha.learning.optimisers import Adam as Adam
    from mosha.learning.optimisers import AdamW as AdamW
    from mosha.learning.plan import DPFTRL as DPFTRL
    from mosha.learning.plan import DPSGD as DPSGD
    from mosha.learning.training import Step as Step
    from mosha.learning.training import Training as Training
    from mosha.learning.validator import mixing_layers as mixing_layers
    from mosha.learning.validator import without_batch_norm as without_batch_norm
    from mosha.learning.wrapping import private as private

_NAMES = {"DPFTRL": "plan", "DPSGD": "plan"}
_TORCH_NAMES = {
    "Adam": "optimisers",
    "AdamW": "optimisers",
    "Step": "training",
    "Training": "training",
    "mixing_layers": "validator",
    "private": "wrapping",
    "without_batch_norm": "validator",
}
__all__ = [*sorted(_NAMES), *sorted(_TORCH_NAMES)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _TORCH_NAMES:
        from mosha.learning.torch_extra import needs_torch  # noqa: PLC0415

        needs_torch()
    module = _NAMES.get(name) or _TORCH_NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'mosha.learning' has no attribute {name!r}")
    return getattr(importlib.import_module(f"mosha.learning.{module}"), name)


def __dir__() -> list[str]:
    return __all__
