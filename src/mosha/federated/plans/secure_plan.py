"""What plans have in common of which secure aggregation opens the noisy sum alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from mosha.core.errors import InvalidParameter, RunError, SourceUnavailable
from mosha.core.fingerprint import fingerprint
from mosha.core.measurement import Measurement, Rng, StatePolicy
from mosha.federated.plans.plan import MOST, FederatedPlan, check_count
from mosha.federated.round_number import Turn
from mosha.federated.secure.keys import Ring
from mosha.federated.secure.session import Session

__all__ = ["Opened", "SecureFederation", "SecurePlan"]


@dataclass(frozen=True)
class Opened:
    """What secure aggregation gives: the sum modulo 2**32, of how many, and the label that their round had."""

    total: Ring
    survivors: int
    label: bytes


@runtime_checkable
class SecureFederation(Protocol):
    """A federation whose clients encode and mask what they add themselves, each with its share of the noise."""

    def clients(self) -> Sequence[Hashable]: ...

    def secure_sum(self, chosen: Sequence[Hashable], ask: Any) -> Opened: ...


class SecurePlan(FederatedPlan):
    """Rounds in which every client adds a share of the noise: Distributed and DistributedExamples.

    Guarantee:
        A session is refused by whoever has this plan unless it is of the very same plan (`agreed`), opens sums of
        `survivors` clients or more, and is no wider than planned.
    """

    if TYPE_CHECKING:  # fields of the dataclasses

        @property
        def survivors(self) -> int: ...

        @property
        def colluding(self) -> int: ...

        @property
        def partners(self) -> int: ...

        @property
        def coordinates(self) -> int: ...

    @property
    def sharing(self) -> int:
        """How many shares make the whole noise: those that are in every opened sum and that nobody can subtract."""
        return self.survivors - self.colluding

    @property
    def _told_apart(self) -> tuple[int, ...]:
        """The colluders, where there are any: plans without are known as they were before there was such a field."""
        return (self.colluding,) if self.colluding else ()

    @property
    @abstractmethod
    def agreed(self) -> str:
        """The fingerprint of all that the noise of a round and its price come from; server and clients have the same.

        Rounds are no part of it: each side counts its own.
        """

    @abstractmethod
    def width(self, coordinates: int) -> int:
        """How many whole numbers a client adds for a model with so many weights."""

    @abstractmethod
    def sum_in_process(
        self, federation: Any, chosen: Sequence[Hashable], ask: Any, coordinates: int, rng: Rng
    ) -> Opened:
        """The sum of a federation that has no secure aggregation of its own."""

    def session(self, members: Sequence[int], width: int, rng: Rng) -> Session:
        """The terms of one round of secure aggregation among these members."""
        terms = {"partners": self.partners, "survivors": self.survivors, "width": width}
        return Session.begin(members, rng=rng, agreed=self.agreed, **terms)

    def check(self, session: Session) -> None:
        """Refuse a round that is paid for under another plan, or that could open a sum with less noise than planned."""
        if session.agreed != self.agreed:
            raise RunError("federated.other_plan")
        if session.survivors < self.survivors or session.width > self.coordinates:
            raise RunError("federated.plan_of_too_few")

    def measurement(self, coordinates: int, *, about: str = "") -> Measurement:
        """All rounds as one measurement on a model with so many weights.

        On a `SecureFederation` a step asks for the opened sum; on any other one it stands for all clients, and forms
        the very sum that secure aggregation would open.
        """
        weights = check_count("coordinates", coordinates, at_most=self.coordinates)
        self._check_width(self.width(weights))
        self._check_noise()

        def step(turn: Turn, federation: Any, ask: Any, rng: Rng) -> tuple[dict[str, Any], Turn]:
            with turn.round() as number:
                chosen = self.sampling.draw(federation.clients(), self.clients, number, rng)
                if isinstance(federation, SecureFederation):
                    opened = federation.secure_sum(chosen, ask)
                else:
                    opened = self.sum_in_process(federation, chosen, ask, weights, rng)
            if opened.survivors < self.survivors:
                raise SourceUnavailable("federated.fewer_than_planned_survived")
            steps = opened.total.view(np.int32).astype(np.int64)
            known = {"survivors": opened.survivors, "label": opened.label, "coordinates": weights}
            return {"steps": steps, "clip": self.clip, **known}, turn.after()

        return Measurement(
            unit=self.unit,
            event=self.event,
            step=step,
            init=Turn,
            horizon=self.rounds,
            state=StatePolicy(resume=lambda turn, _: turn.after()),  # an answer is one round more
            name="federated rounds, noise of all clients",
            question=fingerprint(self, self.unit, weights, about, *self._told_apart),
        )

    def _check_noise(self) -> None:
        """Refuse a plan whose noise was not chosen, or cannot be drawn in shares."""
        assert self.chosen_noise

    def _check_secure_fields(self) -> None:
        """Bring the fields of secure aggregation into their types, or refuse them."""
        for name, most in (("survivors", MOST), ("partners", MOST), ("coordinates", 1 << 30)):
            object.__setattr__(self, name, check_count(name, getattr(self, name), at_most=most))
        if self.partners < 2:
            raise InvalidParameter("federated.too_few_partners", parameter="partners")
        if not 2 <= self.survivors <= self.sampling.expected_size(self.clients):
            raise InvalidParameter("federated.survivors_of_round", parameter="survivors")
        whole = isinstance(self.colluding, int) and not isinstance(self.colluding, bool)
        if not whole or not 0 <= self.colluding < self.survivors:
            raise InvalidParameter("federated.all_collude", parameter="colluding", spent="nothing")

    def _check_width(self, width: int) -> None:
        if width > self.coordinates:
            raise InvalidParameter(
                "federated.more_weights_than_planned", parameter="coordinates", most=self.coordinates, spent="nothing"
            )
