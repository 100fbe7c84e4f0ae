"""What a user's DataLoader says about its rows: honoured, or refused by name before anything is paid.

A private batch is drawn by the plan's own coins, so a loader's sampler has no say in who is in it. What it says about
which rows may be drawn at all is kept; what it says about how often (weights, turns, replacement) cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import cast

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    default_collate,
)

from mosha.core.errors import InvalidParameter
from mosha.learning.reading.examples import Examples
from mosha.learning.reading.layout import Flat
from mosha.learning.reading.unfit_rows import Places, find_fit_rows

__all__ = ["Pieces", "examples_of", "rows_of"]


def rows_of(loader: DataLoader[object]) -> Dataset[object]:
    """The data set of a loader, cut down to the rows that its sampler may draw.

    Raises:
        InvalidParameter: for a sampler whose wishes a private batch cannot follow. Nothing was spent.
    """
    if loader.batch_sampler is None:
        raise InvalidParameter("learning.loader_of_batches", parameter="loader", spent="nothing")
    if type(loader.batch_sampler) is not BatchSampler:
        raise _unfit(loader.batch_sampler)
    sampler = loader.batch_sampler.sampler
    if type(sampler) is SubsetRandomSampler:
        return Subset(loader.dataset, list(sampler.indices))
    whole = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler and not sampler.replacement and sampler._num_samples is None  # noqa: SLF001
    )
    source = getattr(sampler, "data_source", ())
    if not whole or len(source) != len(cast("Sized", loader.dataset)):
        raise _unfit(sampler)
    return loader.dataset


def examples_of(loader: DataLoader[object]) -> Examples:
    """The rows of a loader, gathered by its own function where it has one."""
    own = None if loader.collate_fn is default_collate else loader.collate_fn
    return Examples(rows_of(loader), gather=own)


def _unfit(sampler: object) -> InvalidParameter:
    return InvalidParameter(
        "learning.loader_sampler", parameter="loader", sampler=type(sampler).__name__, spent="nothing"
    )


class Pieces:
    """The pieces of a batch, read as the loader would: by its worker processes, where it has some."""

    def __init__(self, loader: DataLoader[object]) -> None:
        dataset = rows_of(loader)
        self.examples, self._wanted = examples_of(loader), _Wanted()
        self._workers: DataLoader[object] | None = None
        if loader.num_workers and not isinstance(loader.dataset, TensorDataset):  # tensors are gathered at once
            self._workers = DataLoader(
                dataset,
                batch_sampler=self._wanted,
                num_workers=loader.num_workers,
                collate_fn=loader.collate_fn,
                timeout=loader.timeout,
                worker_init_fn=loader.worker_init_fn,
                multiprocessing_context=loader.multiprocessing_context,
                prefetch_factor=loader.prefetch_factor,
                persistent_workers=True,
            )

    def read(self, pieces: list[Places]) -> Iterator[tuple[object, NDArray[np.bool_]]]:
        """The examples at these positions, a batch a piece, in order; and which of them can be used."""
        self._wanted.pieces = [[int(place) for place in piece] for piece in pieces]
        workers = None if self._workers is None else iter(self._workers)
        for piece in pieces:
            flat, fit = self._read(piece, workers)
            yield self.examples.layout.restore(flat), fit

    def _read(self, piece: Places, workers: Iterator[object] | None) -> tuple[Flat, NDArray[np.bool_]]:
        try:
            found = self.examples.batch(piece) if workers is None else self.examples.layout.flatten(next(workers))
        except Exception:  # noqa: BLE001
            fit = find_fit_rows(piece, self.examples.batch)
            if not fit.any():
                return self.examples.shapes(len(piece)), fit
            return self.examples.batch(np.where(fit, piece, piece[fit.argmax()])), fit
        return found, np.ones(len(piece), np.bool_)


class _Wanted:
    """The rows that worker processes shall read next."""

    def __init__(self) -> None:
        self.pieces: list[list[int]] = []

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)
