"""Adam and AdamW for noisy gradients: what the noise adds to the second moment is public, and taken out of it.

The second moment of g + z is that of g plus the variance of z, which dwarfs it: Adam then is momentum with a constant
step. Subtracting the variance gives back what Adam is for (Tang, Shpilevskiy and Lecuyer 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from mosha.core.errors import InvalidParameter
from mosha.core.number import non_negative, positive
from mosha.learning.plan import DPSGD

__all__ = ["Adam", "AdamW"]


class Adam(torch.optim.Optimizer):
    """Adam whose second moment is corrected for the noise of a plan; post-processing, so without a price.

    Guarantee:
        With m and v the usual moments, corrected for their start, the step is lr m / sqrt(max(v - variance, floor^2)).
        Noise has the known variance plan.noise_deviation^2 in every coordinate.

    Args:
        parameters: as for any optimiser.
        plan: the plan whose noise is taken out.
        lr: the learning rate.
        betas: how much of each moment is kept from step to step.
        floor: the least root of a second moment, as a share of the deviation of the noise.
        weight_decay: how much of the weights is taken off in each step, times lr (as AdamW does).

    >>> plan = DPSGD(steps=10, rate=0.1, clip=1.0, noise_multiplier=1.0, batch=100)
    >>> weight = torch.nn.Parameter(torch.zeros(2))
    >>> optimiser = Adam([weight], plan=plan, lr=0.1)
    >>> weight.grad = torch.tensor([0.5, -0.5])
    >>> optimiser.step()
    >>> [round(value, 3) for value in weight.tolist()]
    [-0.1, 0.1]
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        *,
        plan: DPSGD,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 0.1,
        weight_decay: float = 0.0,
    ) -> None:
        if not (0 <= betas[0] < 1 and 0 <= betas[1] < 1):
            raise InvalidParameter("learning.betas_range", parameter="betas")
        if not isinstance(plan, DPSGD):
            raise InvalidParameter("learning.plan_of_optimizer", parameter="plan")
        positive("lr", lr)
        non_negative("weight_decay", weight_decay)
        deviation = plan.noise_deviation
        options = {"lr": lr, "betas": betas, "variance": deviation**2, "least": positive("floor", floor) * deviation}
        super().__init__(parameters, options | {"weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One update from the gradients that stand in the parameters; a `closure` would ask again, and is refused."""
        if closure is not None:
            raise InvalidParameter("learning.closure_asks_again", parameter="closure")
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._move(p, group)
        return None

    def _move(self, p: Tensor, group: dict[str, Any]) -> None:
        state = self.state[p]
        if not state:
            state["step"], state["first"], state["second"] = 0, torch.zeros_like(p), torch.zeros_like(p)
        state["step"] += 1
        keep, keep_square = group["betas"]
        assert p.grad is not None
        first = state["first"].lerp_(p.grad, 1 - keep)
        second = state["second"].mul_(keep_square).addcmul_(p.grad, p.grad, value=1 - keep_square)
        signal = second / (1 - keep_square ** state["step"]) - group["variance"]
        root = signal.clamp_min_(group["least"] ** 2).sqrt_()
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.addcdiv_(first, root, value=-group["lr"] / (1 - keep ** state["step"]))


class AdamW(Adam):
    """Adam with weight decay, 0.01 unless told otherwise.

    >>> import torch
    >>> import mosha
    >>> plan = mosha.learning.DPSGD(steps=2, rate=0.5, clip=1.0, batch=10).calibrate(epsilon=5, delta=1e-5)
    >>> AdamW(torch.nn.Linear(2, 2).parameters(), plan=plan, lr=0.1).defaults["weight_decay"]
    0.01
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        *,
        plan: DPSGD,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 0.1,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(parameters, plan=plan, lr=lr, betas=betas, floor=floor, weight_decay=weight_decay)
