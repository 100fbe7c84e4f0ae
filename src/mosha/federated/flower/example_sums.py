"""The silo's side of `DistributedExamples` on Flower: a train function that lets nothing leave but masked sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mosha.core.errors import InvalidParameter, MissingExtra
from mosha.core.language import phrase
from mosha.core.private_log import note_privately
from mosha.federated.plans.shared_noise_of_examples import DistributedExamples
from mosha.federated.secure.keys import Ring
from mosha.federated.silos import ExampleSums
from mosha.noise import secure

try:
    from mosha.federated.flower.masking import MaskedSteps
    from mosha.federated.flower.records import ARRAYS, arrays_of
except ImportError:
    raise MissingExtra("federated", needed_for=phrase("federated.on_flower")) from None

if TYPE_CHECKING:
    import torch

__all__ = ["flower_examples"]

Build = Callable[[Any], "tuple[torch.nn.Module, Any, object]"]


def flower_examples(
    plan: DistributedExamples,
    build: Build,
    *,
    collate: Callable[[list[object]], object] | None = None,
    target: str | int | Sequence[str] | None = None,
    like: object = None,
) -> Callable[[Any, Any], Any]:
    """What a ClientApp trains with: `app.train()(flower_examples(plan, build))`.

    Args:
        plan: the silo's own copy: no message of a server changes rate, clip, noise, the number of rounds or the least
            number of survivors.
        build: gives (model, loss, data set) from Flower's context, as `DPSGD.train` takes them. The arrays that the
            server sends have the names of the model's trained parameters.
        collate: as for `DPSGD.train`.
        target: as for `DPSGD.train`.
        like: as for `DPSGD.train`; a data set that is not made of columns needs it.

    Guarantee:
        That of the plan. What leaves is the sum of clipped gradients with the silo's share of the noise, under masks,
        in no more rounds than the plan pays for. A silo whose code breaks adds zeros and its noise, and tells nobody;
        why stands in its private log (`mosha.keep_private_log`).

    >>> plan = DistributedExamples(rounds=9, clients=5, survivors=4, rate=0.1, clip=1.0, batch=40, noise_multiplier=2)
    >>> callable(flower_examples(plan, lambda context: None))
    True
    """
    if not isinstance(plan, DistributedExamples):
        raise InvalidParameter("federated.plan_not_for_silos", parameter="plan", spent="nothing")
    if not callable(build):
        raise InvalidParameter("federated.build_not_a_function", parameter="build", spent="nothing")
    reading: dict[str, Any] = {"collate": collate, "target": target, "like": like}
    steps = MaskedSteps("mosha-examples", plan.check, plan.rounds)

    def training(message: Any, context: Any) -> Any:
        def encode(label: bytes) -> Ring:
            del label
            sent = arrays_of(message.content.array_records[ARRAYS])
            try:
                return _add_up(ExampleSums(plan, *build(context), **reading), sent)
            except Exception as error:  # noqa: BLE001  (what it says, and that it failed, stays in the silo)
                note_privately("a silo could not add up its gradients, and adds zeros with its noise", error)
            size = sum(array.size for array in sent.values())
            return plan.encode(np.zeros(size, np.int64), secure())

        return steps(message, context, encode)

    return training


def _add_up(sums: ExampleSums, sent: dict[str, NDArray[Any]]) -> Ring:
    try:
        if sums.names != list(sent):
            raise InvalidParameter("federated.other_parameters", parameter="arrays")
        return sums.encode(np.concatenate([array.reshape(-1) for array in sent.values()]), secure())
    finally:
        sums.close()
