"""Mosha's trainings as the attacker meets them: one example more or less, whose gradient is as long as it may be.

The model has one layer and a loss that is linear in it, so that an example's gradient is what the attacker wants it
to be, and all else in a step is as in any training: sample, clip, sum on the grid, noise.
"""

from __future__ import annotations

from typing import Any

from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.core.measurement import Measurement

__all__ = ["own_entries"]

FAR = 1e6  # a gradient that has to be clipped


def own_entries() -> list[Entry]:
    """Plain, with all extras, and with correlated noise; other plans differ in weights or samples."""
    alone, crowd = [[FAR, 0.0]], [[0.1, 0.1], [-FAR, 0.0]]
    pairs = (
        Proposal("a far example in a crowd", crowd + alone, crowd),
        Proposal("an example that is no number", [[float("nan"), 0.0]], []),
    )
    plans: dict[str, dict[str, Any]] = {
        "flat": {},
        "adaptive with a loss": {"clipping": "adaptive", "batch": 2, "loss_at_most": 1.0},
    }
    entries = [_entry("DPSGD", name, options, pairs) for name, options in plans.items()]
    amplified = {"bands": 2, "sampling": "poisson", "rate": 0.4}
    banded = [_entry("DPFTRL", "banded", {"bands": 2}, pairs), _entry("DPFTRL", "sampled bands", amplified, pairs)]
    buffered = _entry("DPFTRL", "buffered", {"buffers": 1, "steps": 4}, pairs)  # columns of one unit overlap
    return [*entries, *banded, buffered]


def _entry(kind: str, name: str, options: dict[str, object], pairs: tuple[Proposal, ...]) -> Entry:
    return Entry(f"{kind}: {name}", lambda: _measurement(kind, options), pairs, kind)


def _measurement(kind: str, options: dict[str, object]) -> Measurement:
    """Two steps of a plan on rows of two numbers; the answers as plain lists of numbers."""
    import torch  # noqa: PLC0415  (the guest, where it is attacked)

    from mosha import learning  # noqa: PLC0415
    from mosha.learning.batches import Sampler  # noqa: PLC0415
    from mosha.learning.gradients.engine import Engine  # noqa: PLC0415
    from mosha.learning.noisy_gradients import Answer, Gradients, State  # noqa: PLC0415
    from mosha.learning.reading.examples import Examples  # noqa: PLC0415

    plan = getattr(learning, kind)(**({"steps": 2, "rate": 0.5, "clip": 1.0, "noise_multiplier": 1.0} | options))
    model = torch.nn.Linear(2, 1, bias=False)
    gradients = Gradients(plan, Engine(model), lambda layer, batch: layer(batch[0])[:, 0])
    inner, samplers = gradients.measurement(), list[Sampler]()  # the one of this run

    def step(state: State, rows: Any, ask: object, rng: Any) -> tuple[Any, State]:
        inputs = torch.tensor(rows, dtype=torch.float32).view(-1, 2)
        examples = Examples((inputs, torch.zeros(len(inputs))))
        if state.step == 0:
            samplers[:] = [Sampler(plan, examples.units)]
        answer, following = inner.step(state, (examples, samplers[0]), ask, rng)
        assert isinstance(answer, Answer)
        return (gradients.steps(answer) * 2.0**-gradients.grid.bits).tolist(), following

    return Measurement(
        unit=inner.unit, event=inner.event, init=inner.init, step=step, horizon=inner.horizon, name=inner.name
    )
