"""Checkpoints: what was learned, and where a training was when it was written.

The price is not in the file but in the ledger: opened again under the same key, a training goes on after the last step
that the ledger knows. Steps that were released after the checkpoint was written are not drawn twice; their
update is lost, and said. Written after every step (`every=1`), nothing is lost.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer

if TYPE_CHECKING:
    from mosha.learning.training import Training

__all__ = ["Checkpoint"]


@dataclass
class Checkpoint:
    """A file that is replaced as a whole after every `every` steps, and read when a training begins."""

    path: Path
    every: int = 50

    @classmethod
    def of(cls, given: Any) -> Self:
        """From a path, or {"path": ..., "every": ...}."""
        options = given if isinstance(given, dict) else {"path": given}
        if "path" not in options or set(options) - {"path", "every"}:
            raise InvalidParameter("checkpoint=... is a path, or {'path': ..., 'every': ...}.")
        return cls(Path(options["path"]), positive_integer("every", options.get("every", 50)))

    def note(self, training: Training) -> None:
        """Write where it is time to."""
        if training.number % self.every == 0 or training.number == training.plan.steps:
            self.write(training)

    def write(self, training: Training) -> None:
        """Write beside the file and put it in its place: a crash leaves the old one or the new one."""
        content = {
            "plan": repr(training.plan),
            "model": training.model.state_dict(),
            "optimizer": training.optimizer.state_dict(),
            "training": training.state(),
        }
        beside = self.path.with_name(self.path.name + ".new")
        with beside.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)

    def resume(self, training: Training) -> None:
        """Go on from the file, where there is one; its steps are taken from the ledger, not from the data."""
        if not self.path.exists():
            return
        content = torch.load(self.path, weights_only=False)
        if content.get("plan") != repr(training.plan):
            raise InvalidParameter("this checkpoint belongs to another plan: use another file, or the same plan.")
        training.model.load_state_dict(content["model"])
        training.optimizer.load_state_dict(content["optimizer"])
        training.restore(content["training"])
