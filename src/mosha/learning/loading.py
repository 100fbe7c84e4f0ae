"""What a user's DataLoader says about its rows: honoured, or refused by name before anything is paid.

A private batch is drawn by the plan's own coins, so a loader's sampler has no say in who is in it. What it says about
which rows may be drawn at all is kept; what it says about how often (weights, turns, replacement) cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)

from mosha.core.errors import InvalidParameter
from mosha.learning.examples import Examples

__all__ = ["Pieces", "rows_of"]


def rows_of(loader: DataLoader[Any]) -> Any:
    """The data set of a loader, cut down to the rows that its sampler may draw.

    Raises:
        InvalidParameter: for a sampler whose wishes a private batch cannot follow. Nothing was spent.
    """
    if loader.batch_sampler is None:
        raise InvalidParameter(
            "this loader has batch_size=None, so its data set gives batches and not examples: no example could be "
            "drawn by itself. Give a data set of examples. Nothing was spent."
        )
    if type(loader.batch_sampler) is not BatchSampler:
        raise _unfit(loader.batch_sampler)
    sampler: Any = loader.batch_sampler.sampler
    if type(sampler) is SubsetRandomSampler:
        return Subset(loader.dataset, list(sampler.indices))
    whole = type(sampler) is SequentialSampler or (
        type(sampler) is RandomSampler and not sampler.replacement and sampler._num_samples is None  # noqa: SLF001
    )
    if not whole or len(sampler.data_source) != len(loader.dataset):  # type: ignore[arg-type]
        raise _unfit(sampler)
    return loader.dataset


def _unfit(sampler: Any) -> InvalidParameter:
    return InvalidParameter(
        f"this loader draws with {type(sampler).__name__}, and the batches of a private training are drawn by its "
        "plan, every example with the same chance. For some rows alone give Subset(dataset, indices) or a "
        "SubsetRandomSampler; for several processes use plan.train(group=...). Nothing was spent."
    )


class Pieces:
    """The pieces of a batch, read as the loader would: by its worker processes, where it has some."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        dataset = rows_of(loader)
        self.examples, self._wanted = Examples(dataset, collate=loader.collate_fn), _Wanted()
        self._workers: DataLoader[Any] | None = None
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

    def read(self, pieces: list[NDArray[np.int64]]) -> Iterator[tuple[Any, ...]]:
        """The examples at these positions, a batch a piece, in order."""
        if self._workers is None:
            yield from map(self.examples.batch, pieces)
            return
        self._wanted.pieces = [[int(place) for place in piece] for piece in pieces]
        yield from map(self.examples.check, self._workers)


class _Wanted:
    """The rows that worker processes shall read next."""

    def __init__(self) -> None:
        self.pieces: list[list[int]] = []

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)
