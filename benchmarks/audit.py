"""The attacker: planted faults found, correct twins left alone, tightness, one-run canaries, contracts.

Ratios are shares of what should be found (or left alone), or what was shown over what is claimed; CPU seconds are
those of this machine, beside the sixty that were promised for the whole suite.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks._rows import Row
from mosha import accounting, events, guarantees, noise
from mosha.audit import attack, audit_one_run, claim_of, draw_inclusion, trainer_contract
from tests.audit import test_canary as canaries
from tests.audit.faults import FAULTS, response_right
from tests.audit.trainers import DPSGD, FAULTY

RUNS = 200_000
REPEATS = 20
PURE = guarantees.Pure(1)


def attacked(function: Callable, neighbors: tuple, claim: guarantees.Guarantee = PURE, **how: Any) -> Any:
    return attack(function, neighbors=neighbors, claim=claim, runs=RUNS, batch=True, **how)


def planted() -> list[Row]:
    start = time.process_time()
    found, porous = 0, 0.0
    for fault in FAULTS:
        before = time.process_time()
        found += attacked(fault.faulty, fault.neighbors).broken
        porous = porous or time.process_time() - before
    spent = time.process_time() - start
    return [
        Row("planted faults found, 2e5 calls a world", "all", found / len(FAULTS), 1.0, str(found), str(len(FAULTS))),
        Row("CPU of that suite", "60 s promised", 60 / spent, 1.0, f"{spent:.1f} s", "60 s"),
        Row("float Laplace", "DP-Sniper (published)", 2125 / porous, None, f"{porous:.2f} s", "2125 s"),
    ]


def left_alone() -> list[Row]:
    twins = {(fault.correct, fault.neighbors): fault for fault in FAULTS}
    alarms = sum(attacked(f.correct, f.neighbors).broken for f in twins.values() for _ in range(REPEATS))
    total = REPEATS * len(twins)
    what = f"correct mechanisms left alone, {len(twins)} of them, {REPEATS} times"
    return [Row(what, "all", (total - alarms) / total, 1.0, str(total - alarms), str(total))]


def tightness() -> list[Row]:
    """Lower bound over claim; the Gaussian is compared in epsilon at delta 1e-5."""
    delta = 1e-5
    steps = round(1024 / accounting.gaussian.mu_from_epsilon(1.0, delta))
    cases = {
        "Laplace": (lambda v, n: v + noise.discrete_laplace(1024, n), (0, 1024), PURE),
        "randomized response": (response_right, (0, 1), PURE),
        "Gaussian": (lambda v, n: v + noise.discrete_gaussian(steps, n), (0, 1024), guarantees.Gaussian(1024 / steps)),
    }
    rows = []
    for name, case in cases.items():
        verdicts = [attacked(*case) for _ in range(9)]
        shown = median(verdict.lower for verdict in verdicts)
        if name == "Gaussian":
            shown = accounting.epsilon(events.Gaussian(1 / shown), delta)
            claimed = accounting.epsilon(events.Gaussian(steps / 1024), delta)
        else:
            claimed = 1.0
        rows.append(Row(f"shown of the claim: {name}", "claim", shown / claimed, 0.9, f"{shown:.3f}", f"{claimed:.3f}"))
    return rows


def one_run() -> list[Row]:
    training = events.Gaussian(canaries.NOISE).sample(0.1) * 200
    claim = claim_of(training, delta=1e-5)
    found = 0
    for fault in canaries.FAULTS.values():
        included = draw_inclusion(5_000)
        scores = canaries.one_training(included, noise_multiplier=canaries.NOISE, **fault)
        found += audit_one_run(scores, included, claim=claim).broken
    quiet = 0
    for _ in range(REPEATS):
        included = draw_inclusion(5_000)
        scores = canaries.one_training(included, noise_multiplier=canaries.NOISE)
        quiet += not audit_one_run(scores, included, claim=claim).broken
    claimed = f"epsilon {accounting.epsilon(training, 1e-5):.2f}"
    return [
        Row(f"one run, 5000 canaries, {claimed}: faults found", "all", found / 3, 1.0, str(found), "3"),
        Row("one run: correct trainer left alone", "all", quiet / REPEATS, 1.0, str(quiet), str(REPEATS)),
    ]


def contracts() -> list[Row]:
    found = sum(clause in trainer_contract(faulty()).broken for faulty, clause in FAULTY.items())
    trainer = DPSGD()
    start = time.process_time()
    kept = sum(trainer_contract(trainer).kept for _ in range(40))
    each = (time.process_time() - start) / 40
    return [
        Row("trainer contracts: faults found", "all", found / len(FAULTY), 1.0, str(found), str(len(FAULTY))),
        Row("trainer contracts: correct one left alone", "all", kept / 40, 1.0, str(kept), "40"),
        Row("CPU of one contract", "1 s promised", 1 / max(each, math.ulp(1.0)), 1.0, f"{each:.2f} s", "1 s"),
    ]


PIECES = {piece.__name__: piece for piece in (planted, left_alone, tightness, one_run, contracts)}
