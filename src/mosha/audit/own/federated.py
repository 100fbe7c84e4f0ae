"""Mosha's federated rounds as the attacker meets them: one client more or less, with the update that tells most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from mosha import federated as f
from mosha.audit.claims.neighbors import Proposal
from mosha.audit.registry import Entry
from mosha.core.errors import MissingExtra
from mosha.core.language import phrase
from mosha.core.measurement import Measurement
from mosha.federated.plans.secure_plan import Opened
from mosha.noise import secure

__all__ = ["own_entries"]

WIDTH = 2


class _Sent:
    """A federation whose clients send fixed updates."""

    def __init__(self, **sent: Sequence[float]) -> None:
        self.sent = sent

    def clients(self) -> list[str]:
        return list(self.sent)

    def updates(self, chosen: Sequence[str], ask: object) -> Iterator[f.Block]:
        del ask
        rows = np.array([self.sent[client] for client in chosen], np.float64).reshape(-1, WIDTH)
        yield f.Block(list(chosen), rows)


class _Answering:
    """Clients that answer one question; what they add is opened as a sum, as secure aggregation does."""

    def __init__(self, question: f.Analytics, *values: object) -> None:
        self.question, self.values = question, values

    def clients(self) -> list[int]:
        return list(range(len(self.values)))

    def secure_sum(self, chosen: Sequence[int], ask: object) -> Opened:
        del ask
        parts = [self.question.encode(self.values[client], secure()) for client in chosen]
        return Opened(np.sum(parts, axis=0, dtype=np.uint32), len(parts), b"")


class _Summing:
    """A silo that adds up clipped gradients of a linear score, and one without data; their sum is opened."""

    def __init__(self, plan: f.DistributedExamples, *rows: Sequence[float]) -> None:
        self.plan, self.rows = plan, rows

    @cached_property
    def sums(self) -> f.ExampleSums:
        """Made when it is first asked: whoever lists entries needs no torch."""
        try:
            import torch  # noqa: PLC0415  (an extra)
        except ImportError:
            raise MissingExtra("learning", needed_for=phrase("audit.sums_of_examples")) from None

        def loss(score: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            return (score * target).sum(dim=1)

        data = torch.tensor(self.rows, dtype=torch.float32), torch.ones(len(self.rows), 1)
        return f.ExampleSums(self.plan, torch.nn.Linear(WIDTH, 1, bias=False), loss, data)

    def clients(self) -> list[str]:
        return ["with data", "without"]

    def secure_sum(self, chosen: Sequence[str], ask: object) -> Opened:
        del ask
        total = self.sums.encode(np.zeros(WIDTH), secure())
        return Opened(total + self.plan.encode(np.zeros(WIDTH, np.int64), secure()), len(chosen), b"")


def own_entries() -> list[Entry]:
    """One entry or more for each kind of plan and question."""
    return [*_at_the_server(), *_elsewhere(), *_in_silos(), *_questions()]


def _entry(name: str, build: Callable[[], Measurement], *proposals: Proposal) -> Entry:
    covers = name.partition(":")[0]
    return Entry(name, lambda: build().map(_numbers), proposals, covers, {})


def _numbers(answer: dict[str, Any]) -> tuple[float, ...]:
    """What an attacker looks at: all noisy coordinates, and the bits of an adaptive clip."""
    steps = tuple(float(step) for step in answer["steps"])
    return (*steps, float(answer["within"])) if "within" in answer else steps


def _one_more(**long: Sequence[float]) -> list[Proposal]:
    base = {"a": (0.0, 0.6), "b": (-0.6, 0.0)}
    return [Proposal(f"one client more, {name}", _Sent(**base, new=row), _Sent(**base)) for name, row in long.items()]


WORST = {"of full length": (1.0, 0.0), "far too long": (1e30, 0.0)}


def _server_side(**changes: object) -> Measurement:
    known: dict[str, Any] = {"rounds": 1, "clients": 3, "clip": 1.0, "noise_multiplier": 1.0}
    return f.ServerSide(**(known | changes)).measurement(WIDTH)


def _at_the_server() -> list[Entry]:
    pairs = _one_more(**WORST)
    swapped = [Proposal("one client for another", _Sent(a=(1.0, 0.0), b=(0, 0)), _Sent(a=(-1.0, 0.0), b=(0, 0)))]
    adaptive = f.AdaptiveClip(start=1.0, count_noise=2.0)
    return [
        _entry("ServerSide: everybody", _server_side, *pairs),
        _entry("ServerSide: Poisson", lambda: _server_side(rate=0.5), *pairs),
        _entry("ServerSide: fixed size", lambda: _server_side(clients=2, cohort=2, noise_multiplier=0.5), *swapped),
        _entry("ServerSide: Laplace", lambda: _server_side(noise="laplace"), *pairs),
        _entry("ServerSide: adaptive clip", lambda: _server_side(clip=adaptive), *pairs),
        _entry("ServerSide: correlated noise", lambda: _build_correlated(bands=2), *pairs),
        _entry("ServerSide: buffers", lambda: _build_correlated(buffers=1, rounds=4), *pairs),
    ]


def _build_correlated(**changes: object) -> Measurement:
    """Rounds with noise from a secret, whose price covers what one does to the next; turns are every second round."""
    known: dict[str, Any] = {"rounds": 1, "clients": 3, "clip": 1.0, "noise_multiplier": 1.0, "period": 2}
    return f.ServerSide(**(known | changes)).measurement(WIDTH, secret=secure().bytes(32))


def _elsewhere() -> list[Entry]:
    reports = [
        Proposal("any update for any other", np.array([1.0, 0.0]), np.array([-1.0, 0.0])),
        Proposal("a long one for none", np.array([1e9, 0.0]), np.zeros(2)),
    ]
    zeros = (0.0, 0.0)
    shares = [Proposal("a client with data or without", _Sent(a=(1.0, 0.0), b=zeros), _Sent(a=zeros, b=zeros))]
    local: dict[str, Any] = {"rounds": 1, "clients": 2, "clip": 1.0, "noise_multiplier": 1.0}
    return [
        _entry("ClientSide: Gaussian", lambda: f.ClientSide(**local).device(WIDTH), *reports),
        _entry("ClientSide: Laplace", lambda: f.ClientSide(**local, noise="laplace").device(WIDTH), *reports),
        _entry("Distributed: shares", _shares, *shares),
    ]


def _in_silos() -> list[Entry]:
    """One example more in one of two silos, with the gradient that tells most, drawn by a coin."""
    terms: dict[str, Any] = {
        "rounds": 1,
        "clients": 2,
        "survivors": 2,
        "colluding": 0,
        "clip": 1.0,
        "batch": 2,
        "noise_multiplier": 1,
    }
    plan = f.DistributedExamples(**terms, rate=0.5)
    pair = _Summing(plan, (0.0, 0.6), (1e6, 0.0)), _Summing(plan, (0.0, 0.6))
    proposal = Proposal("one example more in one silo", *pair)
    return [_entry("DistributedExamples: one silo", lambda: plan.measurement(WIDTH), proposal)]


def _shares() -> Measurement:
    """The rotation has a public label that differs from run to run; the attacker turns the sum back."""
    plan = f.Distributed(rounds=1, clients=2, clip=1.0, survivors=2, noise_multiplier=1.0)
    decode = plan.decoder()
    return plan.measurement(WIDTH).map(lambda answer: {"steps": decode(answer)})


def _questions() -> list[Entry]:
    terms: dict[str, Any] = {"clients": 3, "survivors": 3, "epsilon": 1.0, "delta": 1e-3}
    kinds: dict[str, tuple[f.Analytics, Any]] = {
        "histogram": (f.histogram(keys=["a", "b"], **terms), "a"),
        "mean": (f.mean(between=(0, 1), **terms), 1.0),
        "accuracy": (f.accuracy(**terms), 1.0),
        "heavy hitters": (f.heavy_hitters(longest=1, alphabet="ab", buckets=64, **terms), "a"),
    }
    return [_question(name, *kind) for name, kind in kinds.items()]


def _question(name: str, question: f.Analytics, value: object) -> Entry:
    """One client with a value or without one; the attacker sees the sum as it is opened."""
    told = replace(question, decode=lambda total: {"steps": total})
    pair = _Answering(question, value, None, None), _Answering(question, None, None, None)
    return _entry(f"Analytics: {name}", told.measurement, Proposal("a client with a value or without one", *pair))
