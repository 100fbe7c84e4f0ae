"""The model on disk: where a training began and where it is, sealed and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, StateRefused
from mosha.core.language import phrase
from mosha.files.store import SealedStore

__all__ = ["Checkpoint"]

Arrays = dict[str, NDArray[Any]]


class Checkpoint:
    """A folder with the initial and the latest model of one training.

    Everything in it is public: the initial model was made before any data was read, later ones are releases. The files
    are sealed, so that a model that somebody else put there is refused.

    Args:
        folder: the path of the folder; it is made when something is first written.

    >>> import tempfile
    >>> Checkpoint(tempfile.mkdtemp()).latest() is None
    True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike) or "\0" in os.fspath(folder):
            raise InvalidParameter("federated.checkpoint_not_a_folder", parameter="checkpoint", spent="nothing")
        self.folder = Path(folder)

    def initial(self, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        """The model that this training began with: the one on disk if there is one, else `arrays`, which is stored."""
        if not isinstance(arrays, Mapping):
            raise InvalidParameter("federated.model_not_a_mapping", spent="nothing")
        found = self._read("initial")
        if found is None and (self.folder / "initial.npz").exists():
            raise InvalidParameter("federated.checkpoint_of_earlier_version", parameter="checkpoint", spent="nothing")
        if found is None:
            self._write("initial", arrays)
            found = self._read("initial")
        return found or {}

    def latest(self) -> Arrays | None:
        """The last model that was stored."""
        return self._read("latest")

    def keep(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the last model by these `arrays`."""
        self._write("latest", arrays)

    def _store(self, name: str) -> SealedStore:
        what, again = phrase(f"federated.the_{name}_model"), phrase("federated.another_folder")
        return SealedStore(self.folder / f"{name}.sealed", purpose="federated-model", what=what, again=again)

    def _write(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._store(name).write(list(arrays.items()))

    def _read(self, name: str) -> Arrays | None:
        if not (self.folder / f"{name}.sealed").exists():
            return None
        try:
            return dict(self._store(name).read())
        except (OSError, ValueError, TypeError, StateRefused):
            raise InvalidParameter(
                "federated.checkpoint_unreadable", parameter="checkpoint", file=f"{name}.sealed", spent="nothing"
            ) from None
