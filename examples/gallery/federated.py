"""Hospitals with different case mix train one model: where the noise is made, and how sums are kept secret.

    python examples/gallery/federated.py [--small] [--pictures FOLDER]

Each hospital sees some diseases more often than others. The same promise with noise at the server, in shares and on the
clients, beside a training without noise; then the cost of adding up under masks and under encryption, and whoever looks
for one hospital in what was opened.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from canvas import Sheet, show

import mosha
from mosha.federated import (
    Ask,
    ClientSide,
    Distributed,
    FedAvg,
    KeyHolder,
    ServerSide,
    Session,
    Simulation,
    add_encrypted,
    encrypt_numbers,
    securely_summed,
    train,
)

PLANS = {
    "open": ("nowhere", "不加噪声"),
    "server": ("at the server", "在服务器"),
    "shares": ("in shares", "各方分担"),
    "clients": ("on the clients", "在各医院"),
}


def hospitals(count: int, patients: int, rng: np.random.Generator) -> tuple[torch.Tensor, ...]:
    """Ten measurements and one of four diseases for each patient; each hospital has a mix of its own."""
    centers = rng.normal(0, 1.2, (4, 10))
    mixes = rng.dirichlet([0.6] * 4, count)
    targets = np.array([rng.choice(4, patients, p=mix) for mix in mixes])
    test = rng.integers(0, 4, 1000)
    drawn = [centers[kind] + rng.normal(0, 1, (*kind.shape, 10)) for kind in (targets, test)]
    return (*(torch.from_numpy(part).float() for part in drawn), torch.from_numpy(targets), torch.from_numpy(test))


def compare_places(count: int, rounds: int, epsilon: float, rng: np.random.Generator) -> dict[str, list[float]]:
    """Accuracy on public data after each round, for each place of the noise and without any."""
    inputs, test, targets, answers = hospitals(count, 20, rng)
    model = torch.nn.Linear(10, 4)
    clients = Simulation(model, torch.nn.functional.cross_entropy, (inputs, targets), local_steps=5, batch=10, rate=0.2)

    def accuracy(weights: Any) -> float:
        with torch.no_grad():
            return float((clients.load(weights)(test).argmax(1) == answers).float().mean())

    terms: dict[str, Any] = {"rounds": rounds, "clients": count, "clip": 0.5, "outer": FedAvg(momentum=0.5)}
    plans = {
        "server": ServerSide(**terms),
        "shares": Distributed(**terms, survivors=int(0.8 * count)),
        "clients": ClientSide(**terms),
    }
    initial = clients.initial()
    found = {"open": [accuracy(weights) for weights in train_openly(clients, initial, rounds)]}
    for name, plan in plans.items():
        chosen = plan.calibrate(epsilon=epsilon, delta=1e-5)
        account = mosha.Ledger.memory().account(name, unit=chosen.unit, epsilon=epsilon, delta=1e-5)
        steps = train(chosen, clients, initial, account=account, evaluate=accuracy)  # type: ignore[arg-type]
        found[name] = [step.metrics for step in steps]
    return found


def train_openly(clients: Simulation, weights: Any, rounds: int) -> Iterator[Any]:
    """The weights after each round of plain averaging, without clipping and without noise."""
    outer = FedAvg(momentum=0.5)
    memory = outer.begin(weights.size)
    for number in range(1, rounds + 1):
        update = clients.mean(clients.clients(), Ask(number, weights))
        weights, memory = outer.advance(weights, update, memory)
        yield weights


def look_for_hospital(hospitals: int, trials: int, *, opened: int, rounds: int) -> float:
    """How often an attacker is right about whether a hospital sent its update, from `opened` inputs added up.

    The attacker knows all other updates, which cancel, and the update in question: what is left is noise, with the
    update or without.
    """
    plan = Distributed(rounds=rounds, clients=hospitals, clip=0.5, survivors=int(0.8 * hospitals))
    plan = plan.calibrate(epsilon=4.0, delta=1e-5)
    secure, decode = mosha.noise.secure(), plan.decoder()
    update, nothing = np.full(44, 0.5 / 44**0.5), np.zeros(44)
    right = 0
    for _ in range(trials):
        label, there = secure.bytes(16), secure.bytes(1)[0] % 2 == 1
        sent = [update if there else nothing, *[nothing] * (opened - 1)]
        total = sum(plan.encode(each, label, secure) for each in sent).astype(np.int32)  # type: ignore[union-attr]
        seen = decode({"coordinates": 44, "label": label, "steps": total, "survivors": 1})
        right += (seen @ update > update @ update / 2) == there
    return right / trials


def compare_sums(members: int, width: int) -> dict[str, float]:
    """CPU seconds of everybody together and bytes of one client, for masks and for encryption; both sums are equal."""
    rng = np.random.default_rng()
    inputs = {n: rng.integers(0, 1 << 32, width, np.uint32) for n in range(1, members + 1)}
    secure = mosha.noise.secure()
    start = time.process_time()
    session = Session.begin(
        list(inputs), partners=min(members - 1, 20), survivors=members // 2, width=width, rng=secure
    )
    masked = securely_summed(session, inputs, secure)
    between = time.process_time()
    holder = KeyHolder()
    sent = [encrypt_numbers(numbers, holder.public_key) for numbers in inputs.values()]
    opened = holder.open_sum(add_encrypted(sent, holder.public_key), width=width)
    end = time.process_time()
    assert np.array_equal(masked, opened)
    return {
        "masks, CPU seconds": between - start,
        "encryption, CPU seconds": end - between,
        "masks, bytes of one input": float(4 * width),
        "encryption, bytes of one input": float(sum(map(len, sent[0]))),
        "encryption, bytes of the public key": float(len(holder.public_key)),
    }


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    count, rounds = (60, 3) if small else (100, 8)
    found: dict[str, Any] = {"hospitals": count, "curves": compare_places(count, rounds, 4.0, rng)}
    for name, curve in found["curves"].items():
        found[f"accuracy, noise {PLANS[name][0]}"] = float(curve[-1])
    found |= compare_sums(*(6, 500) if small else (40, 10_000))
    trials = 20 if small else 200
    found["hospital found in a sum of all, one round"] = look_for_hospital(count, trials, opened=count, rounds=rounds)
    alone = look_for_hospital(count, 5 * trials, opened=1, rounds=rounds)
    found["hospital found in one ciphertext, opened alone"] = alone
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    for color, (name, words) in zip(sheet.colors, PLANS.items(), strict=False):
        curve = found["curves"][name]
        left.plot(range(1, len(curve) + 1), curve, "o-", ms=3, color=color, label=sheet.word(*words))
    left.set_ylim(0, 1)
    title = sheet.word("Accuracy at epsilon 4, by place of the noise", "ε=4 时的准确率，按加噪地点")
    sheet.title(left, title, sheet.word("round", "轮次"))
    sheet.legend(left, loc="lower right")
    names = [sheet.word("masks", "掩码"), sheet.word("encryption", "同态加密")]
    costs = np.array(
        [
            [found[f"{kind}, CPU seconds"], found[f"{kind}, bytes of one input"] / 1e6]
            for kind in ("masks", "encryption")
        ]
    )
    for place, words in enumerate((("CPU seconds, all", "CPU 秒（总计）"), ("MB a client", "每个客户端 MB"))):
        label = sheet.word(*words)
        right.bar(np.arange(2) + (place - 0.5) * 0.35, costs[:, place], 0.33, color=sheet.colors[place], label=label)
    right.set_yscale("log")
    right.set_xticks([0, 1], names)
    sheet.title(right, sheet.word("What a secret sum costs", "秘密求和的开销"))
    sheet.legend(right)


if __name__ == "__main__":
    show("federated", run, draw)
