"""Checkpoints: what was learned, and where a training was when it was written.

The price is not in the file but in the ledger: opened again under the same key, a training goes on after the last step
that the ledger knows. Steps that were released after the checkpoint was written are not drawn twice; their
update is lost, and said. Written after every step (`every=1`), nothing is lost.
"""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from mosha.core.errors import InvalidParameter
from mosha.core.number import positive_integer

if TYPE_CHECKING:
    from mosha.learning.plan import DPSGD
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
            "key": training.key,
            "payment": _payment(training),
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

    def check(self, plan: DPSGD, key: str | None) -> None:
        """Refuse, before anything is paid, a file that cannot be written or belongs to something else."""
        if not self.path.parent.is_dir():
            raise InvalidParameter(
                f"there is no folder {str(self.path.parent)!r} for the checkpoint. Nothing was spent."
            )
        content = self._content()
        for part, wanted in (("plan", repr(plan)), ("key", key)):
            if content and content.get(part) != wanted:
                raise InvalidParameter(
                    f"checkpoint {str(self.path)!r} belongs to another {part}: a training under a new {part} needs a "
                    f"file of its own, and an old one goes on under its own {part}. Nothing was spent."
                )

    def _content(self) -> dict[str, Any]:
        """What stands in the file; nothing where there is none."""
        if not self.path.exists():
            return {}
        try:
            return dict(torch.load(self.path, weights_only=False))
        except (OSError, RuntimeError, ValueError, TypeError, EOFError, pickle.UnpicklingError) as error:
            raise InvalidParameter(
                f"{str(self.path)!r} cannot be read as a checkpoint ({type(error).__name__}): give another path, or "
                "delete it to begin without it. Nothing was spent."
            ) from None

    def resume(self, training: Training) -> None:
        """Go on from the file, where there is one; its steps are taken from the ledger, not from the data."""
        content = self._content()
        if not content:
            return
        if content["payment"] != _payment(training):
            raise InvalidParameter(
                f"checkpoint {str(self.path)!r} belongs to a payment in another ledger or account: give another path. "
                "What was paid now is found again under its key."
            )
        training.model.load_state_dict(content["model"])
        training.optimizer.load_state_dict(content["optimizer"])
        training.restore(content["training"])


def _payment(training: Training) -> str:
    """What tells the payment of a training from every other: its place in a ledger and the hash of its row."""
    assert training.receipt is not None
    return training.receipt.entry
