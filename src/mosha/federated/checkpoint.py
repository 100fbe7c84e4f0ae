"""The model on disk: where a training began and where it is, written whole or not at all."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter
from mosha.files.atomic import replace_file

__all__ = ["Checkpoint"]

Arrays = dict[str, NDArray[Any]]


class Checkpoint:
    """A folder with the initial and the latest model of one training.

    Everything in it is public: the initial model was made before any data was read, later ones are releases.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not isinstance(folder, str | os.PathLike) or "\0" in os.fspath(folder):
            raise InvalidParameter("checkpoint must be the path of a folder. Nothing was spent.")
        self.folder = Path(folder)

    def initial(self, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        """The model that this training began with: the one on disk if there is one, else `arrays`, which is kept."""
        if not isinstance(arrays, Mapping):
            raise InvalidParameter("a model is a mapping from names to arrays. Nothing was spent.")
        place = self.folder / "initial.npz"
        if not place.exists():
            self._write(place, arrays)
        return self._read(place)

    def latest(self) -> Arrays | None:
        """The last model that was kept."""
        place = self.folder / "latest.npz"
        return self._read(place) if place.exists() else None

    def keep(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put a model in the place of the last one."""
        self._write(self.folder / "latest.npz", arrays)

    def _write(self, place: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        stored: dict[str, Any] = {f"array {i}": array for i, array in enumerate(arrays.values())}
        content = io.BytesIO()
        np.savez(content, names=np.array(list(arrays)), **stored)
        replace_file(place, [content.getbuffer()])

    @staticmethod
    def _read(place: Path) -> Arrays:
        try:
            with place.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                names = [str(name) for name in stored["names"]]
                return {name: stored[f"array {i}"] for i, name in enumerate(names)}
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            raise InvalidParameter(
                f"{place.name} in the checkpoint folder cannot be read. Nothing was spent."
            ) from None
