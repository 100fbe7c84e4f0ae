"""Checkpoints: what was learned, and where a training was when it was written.

The price is not in the file but in the ledger: opened again under the same key, a training goes on after the last step
that the ledger knows. Steps that were released after the checkpoint was written are not drawn twice; their
update is lost, and said. Written after every step (`every=1`), nothing is lost.

A file is a `SealedStore`: reading one, whoever wrote it, runs no code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from mosha.core.errors import InvalidParameter, MoshaError, StateRefused
from mosha.core.fingerprint import write_as_stored
from mosha.core.language import phrase
from mosha.core.number import positive_integer
from mosha.files.packing import Kind, pack
from mosha.files.sealed import check_secret
from mosha.files.store import SealedStore

if TYPE_CHECKING:
    from mosha.core.release import Receipt
    from mosha.learning.terms import TrainingTerms

__all__ = ["Checkpoint"]

_PICKLES = (b"PK\x03\x04", b"\x80")  # how files of torch.save and of pickle begin
_PARTS = {"plan", "key", "payment", "model", "optimizer", "training"}


class _Resumable(Protocol):
    """What a checkpoint keeps of a training."""

    plan: TrainingTerms
    model: nn.Module
    optimizer: torch.optim.Optimizer
    number: int
    key: str | None

    @property
    def receipt(self) -> Receipt | None: ...
    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any], /) -> None: ...


@dataclass
class Checkpoint:
    """A sealed file that is replaced as a whole after every `every` steps, and read when a training begins.

    The key of the seal lies beside it in `<file>.key`, readable by the owner alone, unless a `secret` is given. `also`
    are schedulers, moving averages and whatever else has `state_dict` and `load_state_dict`, by names of your own.
    """

    path: Path
    every: int = 50
    secret: bytes | None = field(default=None, repr=False)
    also: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: Any) -> Self:
        """From a path, or {"path": ..., "every": ..., "secret": ..., "also": {"scheduler": ...}}."""
        options = given if isinstance(given, dict) else {"path": given}
        if "path" not in options or set(options) - {"path", "every", "secret", "also"}:
            raise InvalidParameter("learning.checkpoint_options", parameter="checkpoint")
        secret = options.get("secret")
        every = positive_integer("every", options.get("every", 50))
        also = dict(options.get("also") or {})
        if not all(hasattr(one, "state_dict") and hasattr(one, "load_state_dict") for one in also.values()):
            raise InvalidParameter("learning.checkpoint_also", parameter="also", spent="nothing")
        return cls(Path(options["path"]), every, None if secret is None else check_secret(secret), also)

    def note(self, training: _Resumable) -> None:
        """Write where it is time to."""
        if training.number % self.every == 0 or training.number == training.plan.steps:
            self.write(training)

    def write(self, training: _Resumable) -> None:
        """Replace the file: a crash leaves the old one or the new one."""
        content = {
            "plan": write_as_stored(training.plan),
            "key": training.key,
            "payment": _payment(training),
            "model": training.model.state_dict(),
            "optimizer": training.optimizer.state_dict(),
            "training": training.state(),
            "also": self._states(),
        }
        self._store().write(content)

    def _states(self) -> dict[str, Any]:
        return {name: one.state_dict() for name, one in self.also.items()}

    def check(self, plan: TrainingTerms, key: str | None, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Refuse, before anything is paid, a file that cannot be written, belongs to something else or runs code."""
        if not self.path.parent.is_dir():
            raise InvalidParameter(
                "learning.no_folder", parameter="checkpoint", folder=str(self.path.parent), spent="nothing"
            )
        pack(
            [model.state_dict(), optimizer.state_dict(), self._states()], _KINDS
        )  # refuses what no checkpoint could hold
        content = self._content()
        if content and set(content["also"]) != set(self.also):
            raise InvalidParameter(
                "learning.checkpoint_also_differs", parameter="also", names=sorted(content["also"]), spent="nothing"
            )
        for part, wanted in (("plan", write_as_stored(plan)), ("key", key)):
            if content and content[part] != wanted:
                raise InvalidParameter(
                    "learning.checkpoint_of_another",
                    parameter="checkpoint",
                    path=str(self.path),
                    part=part,
                    spent="nothing",
                )

    def _store(self) -> SealedStore:
        what, again = phrase("learning.this_training"), phrase("learning.another_path")
        return SealedStore(self.path, purpose="training", what=what, again=again, secret=self.secret, kinds=_KINDS)

    def _content(self) -> dict[str, Any]:
        """What stands in the file; nothing where there is none."""
        try:
            self._refuse_pickles()
            content = self._store().read() or {}
        except OSError as error:
            raise self._unusable(error) from None
        except StateRefused as error:
            raise error.with_spent("nothing") from None
        if content and (not isinstance(content, dict) or not set(content) >= _PARTS):
            raise StateRefused("learning.other_version", path=str(self.path), spent="nothing")
        return {"also": {}, **content} if content else {}

    def _refuse_pickles(self) -> None:
        """Earlier versions wrote pickles: reading one runs whatever its writer put into it."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            begin = file.read(4)
        if begin.startswith(_PICKLES):
            raise StateRefused("learning.pickle_refused", path=str(self.path))

    def _unusable(self, error: OSError) -> InvalidParameter:
        return InvalidParameter(
            "learning.checkpoint_unusable",
            parameter="checkpoint",
            path=str(self.path),
            reason=type(error).__name__,
            spent="nothing",
        )

    def resume(self, training: _Resumable) -> None:
        """Go on from the file, where there is one; its steps are taken from the ledger, not from the data."""
        content = self._content()
        if not content:
            return
        if content["payment"] != _payment(training):
            raise InvalidParameter("learning.other_payment", parameter="checkpoint", path=str(self.path))
        try:
            training.model.load_state_dict(content["model"])
            training.optimizer.load_state_dict(content["optimizer"])
            training.restore(content["training"])
            for name, one in self.also.items():
                one.load_state_dict(content["also"][name])
        except MoshaError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, RuntimeError, AttributeError):
            raise StateRefused("learning.checkpoint_of_other_model", path=str(self.path)) from None


def _payment(training: _Resumable) -> str:
    """What tells the payment of a training from every other: its place in a ledger and the hash of its row."""
    assert training.receipt is not None
    return training.receipt.entry


def _take_apart(tensor: Tensor) -> dict[str, Any]:
    """A tensor as its type, its shape and its bytes."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        raise InvalidParameter("learning.dense_tensors_alone", spent="nothing")
    values = tensor.detach().cpu().contiguous().reshape(-1)
    data = values.view(torch.uint8).numpy() if values.numel() else np.zeros(0, np.uint8)
    return {"type": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape), "data": data}


def _put_together(parts: dict[str, Any]) -> Tensor:
    kind = getattr(torch, str(parts["type"]))
    if not isinstance(kind, torch.dtype):
        raise TypeError(kind)
    data = torch.from_numpy(np.asarray(parts["data"], np.uint8))
    return (data.view(kind) if data.numel() else torch.zeros(0, dtype=kind)).reshape(parts["shape"])


_KINDS = {"tensor": Kind(Tensor, _take_apart, _put_together)}
