"""A training: paid for as a whole before it starts, one noisy gradient a step, and then it is over."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from mosha.core.account import Account, Run
from mosha.core.errors import HorizonExceeded, InvalidParameter, RunClosed, StepGivenUp
from mosha.core.language import say
from mosha.core.release import Receipt
from mosha.core.showing import Card, Shown
from mosha.core.unit import Person
from mosha.core.watching import tell_progress
from mosha.learning.batches import Sampler
from mosha.learning.checking.probe import Losses, check_buffers, fit_memory, probe
from mosha.learning.checking.sizes import find_smaller_size
from mosha.learning.checkpoint import Checkpoint
from mosha.learning.gradients.device import check_admitted, device_of, place_rows
from mosha.learning.gradients.engine import Engine
from mosha.learning.model_buffers import ModelBuffers, set_training
from mosha.learning.noisy_gradients import Answer, Gradients, State
from mosha.learning.reading.examples import Collate, Examples
from mosha.learning.reading.layout import Call, Flat, Layout, Target
from mosha.learning.team import Team
from mosha.learning.terms import TrainingTerms
from mosha.learning.updates import Updates
from mosha.learning.weight_average import WeightAverage
from mosha.noise.gaussian import prepare_draws

__all__ = ["Audit", "Loss", "Step", "Training", "begin", "make_losses"]

Loss = Callable[[Any, Any], Tensor]
"""From what the model gives and the target to one number an example."""


class Audit(Protocol):
    """What may be handed in as `audit=...`: it sees public things only, before the first and after the last step."""

    def before(self, training: Training, /) -> None: ...

    def after(self, training: Training, /) -> None: ...


@dataclass(frozen=True)
class Step:
    """What is known after step `number` of `steps`, all of it public.

    `loss` is the noisy mean of clipped losses, where the plan declared `loss_at_most`; the exact loss of a private
    batch is never shown. `clip` was in force; `skipped` says why an update was not made, where it was not;
    `seconds_left` is how long the rest may take, and `plan` prices it.

    >>> Step(number=1, steps=2, loss=None, clip=1.0, seconds_left=0.0, skipped=None, plan=None).number
    1
    """

    number: int
    steps: int
    loss: float | None
    clip: float
    seconds_left: float
    skipped: str | None
    plan: TrainingTerms

    @property
    def epsilon(self) -> float | None:
        """The tight price of all steps so far, at the promised delta; worked out when it is asked for."""
        return None if self.plan.delta is None else self.plan.epsilon(after=self.number)

    def __str__(self) -> str:
        price = "" if self.plan.delta is None else f", epsilon {self.epsilon:.3f}"
        loss = "" if self.loss is None else f", loss {self.loss:.3f}"
        said = "" if self.skipped is None else f" (no update: {self.skipped})"
        return f"step {self.number} of {self.steps}{loss}{price}, {self.seconds_left:.0f} s left{said}"


class Training(Shown):
    """A paid training; iterate over it. Made by `DPSGD.train`.

    Made by `plan.train`: `gradients` with noise, the `optimizer`, the paid `run`, the `data`, the `team` of processes,
    a `key`, a place for a `checkpoint`, `audit` and `progress`; `state` is what a checkpoint holds.

    Guarantee:
        Every step passes `Run.step`: it is paid before the data is read, and the step after the last is refused. The
        optimiser sees noisy gradients alone, so that parameters, losses and everything computed from them is
        post-processing.

    >>> import torch
    >>> import mosha
    >>> model = torch.nn.Linear(2, 2)
    >>> plan = mosha.learning.DPSGD(steps=2, rate=0.5, clip=1.0, batch=10).calibrate(epsilon=5, delta=1e-5)
    >>> account = mosha.Ledger.memory().account("digits", unit=mosha.Example(), epsilon=5, delta=1e-5)
    >>> data = (torch.zeros(20, 2), torch.zeros(20, dtype=torch.long))
    >>> loss, optimizer = torch.nn.CrossEntropyLoss(reduction="none"), torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with plan.train(model, data, loss, optimizer, account=account) as training:
    ...     [step.number for step in training]
    [1, 2]
    """

    def __init__(
        self,
        gradients: Gradients,
        optimizer: torch.optim.Optimizer,
        run: Run | None,
        data: tuple[Examples, Sampler],
        *,
        team: Team | None = None,
        key: str | None = None,
        checkpoint: Checkpoint | None = None,
        audit: Audit | None = None,
        progress: bool = False,
    ) -> None:
        self.plan, self.model, self.optimizer = gradients.plan, gradients.engine.model, optimizer
        self.number = 0
        self._gradients, self._run, self._data = gradients, run, data
        gradients.reuse = True
        prepare_draws(gradients.size, gradients.plan.steps)
        self._updates = Updates(gradients)
        self._team = Team(None) if team is None else team
        self.key, self._checkpoint, self._audit, self._progress = key, checkpoint, audit, progress
        self._buffers: ModelBuffers | None = None
        parameters, keep = gradients.engine.parameters, gradients.plan.average
        self._average = None if keep is None else WeightAverage(parameters, keep)
        self._began = time.monotonic()
        self._here = 0
        self._closed = False
        self._lock = threading.Lock()

    @property
    def receipt(self) -> Receipt | None:
        """The proof of payment; None in the processes of a team that do not hold the account."""
        return None if self._run is None else self._run.receipt

    def __repr__(self) -> str:
        return f"Training({type(self.plan).__name__}, step {self.number} of {self.plan.steps})"

    def make_card(self) -> Card:
        """The plan, how far it has come and who paid: all of it public."""
        card, done = self.plan.make_card(), self.number / max(self.plan.steps, 1)
        steps = f"{self.number:,} / {self.plan.steps:,}"
        paid = () if self.receipt is None else (str(self.receipt),)
        title = say("learning.shown_training", plan=card.title)
        return replace(card, title=title, gauges=[(say("learning.shown_steps"), done, steps)], notes=paid)

    def __iter__(self) -> Iterator[Step]:
        while self.number < self.plan.steps:
            try:
                step = self.step()
            except HorizonExceeded:  # steps that failed were paid for, and cannot be taken again
                break
            if self._progress:
                tell_progress(str(step), last=step.number == step.steps)
            yield step
        self._gradients.engine.detach()  # it is over, also for who does not close it

    def step(self) -> Step:
        """The next step: the noisy gradient is paid for, drawn, and handed to the optimiser."""
        with self._lock:  # the sums of a step go where the answer to the last one was, until that was read
            return self._step()

    def _step(self) -> Step:
        if self._closed:
            raise RunClosed("learning.training_closed")
        if self.number >= self.plan.steps:
            raise HorizonExceeded("learning.all_steps_taken", steps=self.plan.steps)
        self._gradients.engine.check_unchanged()
        sums = torch.stack([p.detach().sum() for p in self._gradients.engine.parameters.values()])
        broken = not bool(torch.isfinite(sums).all())
        changed = set_training(self.model)
        self._buffers = self._buffers or ModelBuffers(self.model)
        answer = self._answer()
        for module, was in changed.items():
            module.training = was
        check_buffers(self._buffers)
        self._here += 1
        loss = skipped = None
        if answer is None:
            skipped = "released before the last checkpoint was written, and not drawn twice"
        elif broken:
            skipped = "the parameters are not finite any more; lower the learning rate"
        else:
            loss = self._updates.apply(answer)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            if self._average is not None:
                self._average.follow()
        if self._checkpoint is not None:
            self._checkpoint.note(self)
        left = (time.monotonic() - self._began) / self._here * (self.plan.steps - self.number)
        clip = self.plan.clip if answer is None else answer.clip
        return Step(self.number, self.plan.steps, loss, clip, left, skipped, self.plan)

    def _answer(self) -> Answer | None:
        """The noisy sum; None for a step that an earlier process released and could not keep."""
        if self._run is None:
            answer = self._team.follow(self._gradients, self._data, self.number)
            self.number += 1
            return answer
        self._gradients.last = None
        answer = self._take_step(self._run)
        found = answer if isinstance(answer, Answer) else self._gradients.last
        return self._team.lead(found)

    def _take_step(self, run: Run) -> Any:
        """The next step that can be taken: those that failed before it count, too, as one that was lost twice does."""
        try:
            release = run.step(self._data, ask=self.model)
        except StepGivenUp:
            release = run.step(self._data, ask=self.model)
        self.number = release.step
        return release.value

    def state(self) -> dict[str, Any]:
        """All that a checkpoint needs besides model and optimiser. With shuffled batches it is private."""
        sampler, following = self._data[1].state(), self._gradients.following
        kept = None if following is None else asdict(following)
        average = None if self._average is None else self._average.state()
        return {
            "number": self.number,
            "updates": self._updates.state(),
            "sampler": sampler,
            "following": kept,
            "average": average,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on after the steps of a checkpoint: the ledger gives their answers, and no data is read for them."""
        self._updates.restore(state["updates"])
        self._data[1].restore(state["sampler"])
        self._gradients.restored = None if state["following"] is None else State(**state["following"])
        if self._average is not None:
            self._average.restore(state["average"])
        assert self._run is not None
        while self.number < state["number"]:
            self._take_step(self._run)

    def averaged_model(self) -> nn.Module:
        """A copy of the model with the parameters averaged over steps, where the plan says `average=...`."""
        if self._average is None:
            raise InvalidParameter("learning.no_average", parameter="average", spent="nothing")
        return self._average.copy_model(self.model)

    def close(self) -> None:
        """End the training: layers get their own forward pass back, unused steps are handed back where rules allow."""
        if self._audit is not None and self.number == self.plan.steps:
            audit, self._audit = self._audit, None
            audit.after(self)
        self._closed = True
        self._gradients.engine.detach()
        if self._run is not None:
            self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_losses(
    loss: Loss,
    autocast: torch.dtype | None = None,
    layout: Layout | None = None,
    augment: Callable[..., object] | None = None,
) -> Losses:
    """From (output, target) -> one loss an example to (model, batch) -> one loss an example.

    Inputs are augmented where the model is in training mode: the look compares losses in evaluation mode as well.
    """
    if getattr(loss, "reduction", "none") != "none":
        raise InvalidParameter("learning.loss_averages", parameter="loss", loss=type(loss).__name__, spent="nothing")
    if not callable(loss):
        raise InvalidParameter("learning.loss_not_callable", parameter="loss")

    if layout is not None and not layout.targets:
        raise InvalidParameter("learning.no_target", parameter="target", spent="nothing")

    def losses(model: nn.Module, batch: Flat) -> Tensor:
        batch = place_rows(batch, model)
        call = Call(batch[:-1], {}, batch[-1]) if layout is None else layout.join(batch)
        call = call.change(augment) if augment is not None and model.training else call
        kind = device_of(model).type
        if autocast is None and not torch.is_autocast_enabled(kind):  # a context costs as much as a small layer
            return loss(call.ask(model), call.target)
        with torch.autocast(kind, dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            return loss(call.ask(model), call.target)

    return losses


def check_optimizer(optimizer: object, engine: Engine) -> None:
    """The optimiser must hold exactly the parameters that are trained."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidParameter("learning.not_an_optimizer", parameter="optimizer", spent="nothing")
    if getattr(optimizer, "is_private", False):
        raise InvalidParameter("learning.private_already", parameter="optimizer", spent="nothing")
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise InvalidParameter(
            "learning.asks_several_times", parameter="optimizer", optimizer=type(optimizer).__name__, spent="nothing"
        )
    held = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    if held != {id(p) for p in engine.parameters.values()}:
        raise InvalidParameter("learning.other_parameters", parameter="optimizer", spent="nothing")


def check_precision(engine: Engine) -> None:
    """Parameters in single precision alone: what sums round away is proved for it."""
    check_admitted(engine.device)
    other = [name for name, p in engine.parameters.items() if p.dtype != torch.float32]
    if other:
        raise InvalidParameter("learning.not_single_precision", parameter=other[0], spent="nothing")


def _check_options(autocast: object, audit: object) -> None:
    if autocast not in (None, torch.bfloat16, torch.float16):
        raise InvalidParameter("learning.autocast_options", parameter="autocast", spent="nothing")
    if audit is not None and not (hasattr(audit, "before") and hasattr(audit, "after")):
        raise InvalidParameter("learning.audit_options", parameter="audit", spent="nothing")


def _keep_first_holders(plan: TrainingTerms, team: Team, examples: Examples) -> None:
    """Of several processes that hold a person, the first trains with it: a person is clipped once."""
    if team.size == 1 or not isinstance(plan.unit, Person):
        return
    if plan.sampling == "fixed_size":
        raise InvalidParameter("learning.persons_in_several", parameter="sampling", spent="nothing")
    examples.keep(team.find_first_holders(examples.names()))


def begin(
    plan: TrainingTerms,
    model: nn.Module,
    dataset: object,
    loss: Any,
    optimizer: torch.optim.Optimizer,
    *,
    account: Account | None,
    owners: Iterable[object] | None,
    key: str | None,
    checkpoint: object,
    audit: Audit | None,
    progress: bool,
    group: object,
    autocast: Any,
    collate: Collate | None,
    target: Target | None,
    like: object,
    augment: Callable[..., object] | None,
) -> Training:
    """Check everything that can be checked without data, then pay."""
    make_losses(loss)  # refuses one that averages
    _check_options(autocast, audit)
    if (owners is not None) != isinstance(plan.unit, Person):
        raise InvalidParameter("learning.owners_and_person", parameter="owners", spent="nothing")
    examples = Examples(dataset, owners=owners, each=plan.each, collate=collate, target=target, like=like)
    team = Team(group)
    if team.leads != isinstance(account, Account):
        raise InvalidParameter("learning.account_of_first", parameter="account")
    if checkpoint is not None and (key is None or team.size > 1):
        raise InvalidParameter("learning.checkpoint_needs_key", parameter="checkpoint")
    kept = None if checkpoint is None else Checkpoint.of(checkpoint)
    _keep_first_holders(plan, team, examples)
    engine = Engine(model)
    try:
        check_precision(engine)
        check_optimizer(optimizer, engine)
        losses = make_losses(loss, autocast, examples.layout, augment)
        plan = fit_memory(plan, engine, losses, examples.shapes)
        if kept is not None:
            kept.check(plan, key, engine.model, optimizer)
        rows, targets = plan.at_once * plan.rows_of_unit, examples.layout.targets
        probe(engine, losses, examples.shapes, rows=rows, each=plan.rows_of_unit, targets=targets)
        gradients = Gradients(plan, engine, losses)
        gradients.smaller = find_smaller_size(plan, engine, losses, examples.shapes(rows), targets=targets)
        team.share_model(engine.model)
        gradients.reduce = team.reduce if team.size > 1 else None
        data = (examples, Sampler(plan, examples.units))
        run = None if account is None else account.open(gradients.measurement(keyed=key is not None), key=key)
        training = Training(
            gradients, optimizer, run, data, team=team, key=key, checkpoint=kept, audit=audit, progress=progress
        )
        if kept is not None:
            kept.resume(training)
        if audit is not None:
            audit.before(training)
    except BaseException:
        engine.detach()
        raise
    return training
