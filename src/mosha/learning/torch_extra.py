"""The guest: PyTorch is needed where a model is trained, and nowhere before."""

from __future__ import annotations

import importlib.util

from mosha.core.errors import MissingExtra

__all__ = ["needs_torch"]


def needs_torch() -> None:
    """Refuse in words where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise MissingExtra("learning", needed_for="training a model")
