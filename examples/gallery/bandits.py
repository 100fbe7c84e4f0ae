"""Reinforcement learning: a bandit that hides each person's reward, and a policy trained on private episodes.

    python examples/gallery/bandits.py [--small] [--pictures FOLDER]

Five treatments, of which one is best. Regret is what was lost against always giving the best one. Then a policy for a
corridor of nine places is trained by DP-SGD on logged episodes: one episode, one person.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from canvas import Sheet, show, wallet
from torch import nn

import mosha
from mosha.streams import Bandit

CHANCES = np.array([0.30, 0.45, 0.40, 0.60, 0.35])
LENGTH, STEPS = 9, 12


class OpenBandit(Bandit):
    """The same rules on sums without noise: what privacy costs is the difference."""

    def _publish(self, row: dict[str, list[object]]) -> np.ndarray:
        exact = getattr(self, "_exact", np.zeros(len(CHANCES)))
        exact[row["arm"][0]] += row["reward"][0]  # type: ignore[call-overload]
        self._exact = exact
        return exact.copy()

    def _find_bar(self) -> float:
        return 0.0

    def _find_deviations(self) -> np.ndarray:
        return np.sqrt(0.25 / self._counts)  # type: ignore[attr-defined]


def play(kind: type[Bandit], people: int, epsilon: float, method: str, rng: np.random.Generator) -> np.ndarray:
    """Regret after each person."""
    account = wallet(mosha.Reading(), epsilon)
    bandit = kind(range(len(CHANCES)), horizon=people, account=account, epsilon=epsilon, method=method)  # type: ignore[arg-type]
    lost = np.empty(people)
    for person in range(people):
        arm = bandit.choose()
        lost[person] = CHANCES.max() - CHANCES[arm]  # type: ignore[call-overload]
        bandit.record(float(rng.random() < CHANCES[arm]))  # type: ignore[call-overload]
    return np.cumsum(lost)


def guess_reward(epsilon: float, people: int, rounds: int, rng: np.random.Generator) -> float:
    """How often the first person's reward is told from the first sums that were published."""
    right = 0
    for _ in range(rounds):
        bandit = Bandit([0, 1], horizon=people, account=wallet(mosha.Reading(), epsilon), epsilon=epsilon)
        reward = float(rng.random() < 0.5)
        arm = bandit.choose()
        bandit.record(reward)
        right += (bandit.means[arm] > 0.5) == bool(reward)
    return right / rounds


def walk(policy: nn.Module | None, episodes: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Places, moves and returns: one starts in the middle, the prize lies at the right end, and each step costs."""
    places = np.zeros((episodes, STEPS), np.int64)
    moves, reached = np.zeros_like(places), np.zeros(episodes, bool)
    at, steps = np.full(episodes, LENGTH // 2), np.zeros(episodes)
    for t in range(STEPS):
        right = np.full(episodes, 0.5)
        if policy is not None:
            with torch.no_grad():
                right = torch.softmax(policy(nn.functional.one_hot(torch.from_numpy(at), LENGTH).float()), 1)[
                    :, 1
                ].numpy()
        move = (rng.random(episodes) < right).astype(np.int64)
        places[:, t], moves[:, t] = at, move
        at = np.where(reached, at, np.clip(at + 2 * move - 1, 0, LENGTH - 1))
        steps += ~reached
        reached |= at == LENGTH - 1
    return places, moves, reached - steps / (2 * STEPS)


def train_policy(people: int, epsilon: float | None, rng: np.random.Generator) -> float:
    """The mean return of a policy learned from logged episodes of a random walker."""
    places, moves, returns = walk(None, people, rng)
    inputs = nn.functional.one_hot(torch.from_numpy(places), LENGTH).float()
    weights = torch.from_numpy(np.column_stack([moves, returns])).float()
    policy = nn.Linear(LENGTH, 2)
    optimizer = torch.optim.SGD(policy.parameters(), lr=4.0)

    def loss(logits: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        chosen = nn.functional.log_softmax(logits, 2).gather(2, told[:, :STEPS, None].long().clamp(0, 1))[:, :, 0]
        return -(chosen.mean(1) * (told[:, STEPS] + 0.4))  # 0.4: a public guess of the mean return

    if epsilon is None:
        for _ in range(60):
            optimizer.zero_grad()
            loss(policy(inputs), weights).mean().backward()
            optimizer.step()
    else:
        plan = mosha.learning.DPSGD(steps=60, rate=0.2, clip=0.5, batch=int(0.2 * people))
        plan = plan.calibrate(epsilon=epsilon, delta=1e-5)
        account = wallet(mosha.Example(), epsilon, 1e-5)
        with plan.train(policy, (inputs, weights), loss, optimizer, account=account) as training:
            for _ in training:
                pass
    return float(walk(policy, 2000, rng)[2].mean())


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    people, rounds = (400, 1) if small else (4000, 2)
    found: dict[str, Any] = {"people": people, "curves": {}}
    for method in ("ucb", "thompson"):
        for epsilon in (None, 1.0, 0.2):
            kind = OpenBandit if epsilon is None else Bandit
            curves = [play(kind, people, epsilon or 1.0, method, rng) for _ in range(rounds)]
            name = f"{method}, {'in the open' if epsilon is None else f'epsilon {epsilon:g}'}"
            found["curves"][name] = np.mean(curves, axis=0)
            found[f"regret, {name}"] = float(found["curves"][name][-1])
    found["first reward guessed, epsilon 1"] = guess_reward(1.0, people, 20 if small else 100, rng)
    episodes = 500 if small else 2000
    found["return of a random walker"] = float(walk(None, 2000, rng)[2].mean())
    for epsilon in (None, 1.0, 4.0) if not small else (None, 4.0):
        name = "in the open" if epsilon is None else f"epsilon {epsilon:g}"
        found[f"return of the policy, {name}"] = train_policy(episodes, epsilon, rng)
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    titles = (("Upper bounds (UCB)", "上置信界（UCB）"), ("Thompson sampling", "汤普森采样"))
    for axes, method, words in zip(sheet.axes, ("ucb", "thompson"), titles, strict=True):
        kinds = (("in the open", ("not private", "不加保护")), ("epsilon 1", ("epsilon 1", "ε=1")))
        for color, (name, label) in zip(
            (sheet.look["pale"], *sheet.colors[:2]), (*kinds, ("epsilon 0.2", ("epsilon 0.2", "ε=0.2"))), strict=True
        ):
            axes.plot(found["curves"][f"{method}, {name}"], color=color, label=sheet.word(*label))
        sheet.title(axes, sheet.word(*words), sheet.word("people so far", "已到人数"), sheet.word("regret", "遗憾"))
        sheet.legend(axes)


if __name__ == "__main__":
    show("bandits", run, draw)
