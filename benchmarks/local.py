"""Local reports: errors against theory, speed against pure-ldp 1.2.0 and multi-freq-ldpy 0.2.5, shuffle prices."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row, best_cpu
from mosha import audit, guarantees
from mosha.accounting.measures import blanket, pure, shuffle
from mosha.audit.own.local import own_entries
from mosha.local import Distribution, Frequency, Shares, consistent
from mosha.local.protocols.numeric import numeric_by_name, worst_variance
from mosha.local.protocols.planar import radius_quantile

BEST: Final = 4 * math.e / (math.e - 1) ** 2  # n times the squared error of optimised unary at epsilon 1
GOLDEN: Final = Path(__file__).parent.parent / "tests" / "local" / "golden.csv"

PURE_LDP: Final = """
import json, sys, time
from pure_ldp.frequency_oracles import *
size, count = 100, 1000
made = {
    "k-ary": (DEClient(1.0, size), DEServer(1.0, size)),
    "optimised-unary": (UEClient(1.0, size, use_oue=True), UEServer(1.0, size, use_oue=True)),
    "local-hashing": (LHClient(1.0, size, use_olh=True), LHServer(1.0, size, use_olh=True)),
}
rows = {}
for name, (client, server) in made.items():
    best = [1e9, 1e9]
    for _ in range(3):
        start = time.process_time()
        reports = [client.privatise(1 + i % size) for i in range(count)]
        middle = time.process_time()
        for report in reports:
            server.aggregate(report)
        best = [min(best[0], middle - start), min(best[1], time.process_time() - middle)]
    rows[name] = [seconds / count for seconds in best]
print(json.dumps(rows))
"""

MULTI_FREQ: Final = """
import json, time
from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, SS, UE
size, count = 100, 5000
made = {
    "k-ary": (lambda v: GRR.GRR_Client(v, size, 1.0), lambda r: GRR.GRR_Aggregator_MI(r, size, 1.0)),
    "optimised-unary": (lambda v: UE.UE_Client(v, size, 1.0, True), lambda r: UE.UE_Aggregator_MI(r, 1.0, True)),
    "local-hashing": (lambda v: LH.LH_Client(v, size, 1.0, True), lambda r: LH.LH_Aggregator_MI(r, size, 1.0, True)),
    "subset-selection": (lambda v: SS.SS_Client(v, size, 1.0), lambda r: SS.SS_Aggregator_MI(r, size, 1.0)),
}
rows = {}
for name, (client, server) in made.items():
    best = [1e9, 1e9]
    for _ in range(4):  # the first one compiles
        start = time.process_time()
        reports = [client(i % size) for i in range(count)]
        middle = time.process_time()
        server(reports)
        best = [min(best[0], middle - start), min(best[1], time.process_time() - middle)]
    rows[name] = [seconds / count for seconds in best]
print(json.dumps(rows))
"""


LEAKY_SUBSET: Final = """
import json
from multi_freq_ldpy.pure_frequency_oracles import SS
print(json.dumps([[int(SS.SS_Client(value, 100, 1.0)[0]) for _ in range(400_000)] for value in (0, 1)]))
"""

LEAKY_RAPPOR: Final = """
import json
from pure_ldp.frequency_oracles import RAPPORClient
client = RAPPORClient(0.5, 4, [[lambda text: int(text)]], num_of_cohorts=1)  # f = 0.5: epsilon 2 log 3
print(json.dumps([[client.privatise(value + 1)[0] for _ in range(20_000)] for value in (0, 1)]))
"""

PURE: Final = ("pure-ldp==1.2.0", "xxhash<4", "scikit-learn", "statsmodels", "setuptools<81")
MULTI: Final = ("multi-freq-ldpy==0.2.5", "xxhash<4", "setuptools<81")


def errors() -> list[Row]:
    """n times the mean squared error of the protocol with the least error in so many bytes, raw and consistent.

    One collection is 18% off the average after consistency, so that 250 of them tell it to 1.1%; raw errors are told to
    1%, and the law of a report tells what they are on average for a rare value. Beside shares stands what
    can be had at all: the same by somebody who knows in advance that shares fall with their rank to the power -1.1.
    """
    rows = []
    for size, count, repeats, room in (
        (100, 100_000, 250, 8),
        (100, 100_000, 250, 16),
        (1000, 100_000, 300, 8),
        (100, 1_000_000, 250, 8),
        (100, 1_000_000, 250, 16),
        (1000, 1_000_000, 120, 8),
    ):
        survey = Frequency(range(size), epsilon=1.0, bytes_per_report=room)
        weights = np.arange(1, size + 1) ** -1.1
        values = np.random.default_rng().choice(size, count, p=weights / weights.sum())
        truth = np.bincount(values, minlength=size) / count
        raw = kept = known = 0.0
        for _ in range(repeats):
            shares = survey.estimate(survey.reports(values))
            raw += count * float(np.mean((shares.raw - truth) ** 2)) / repeats
            kept += count * float(np.mean((shares.shares - truth) ** 2)) / repeats
            if size == 100:
                told = consistent(_told_the_law(shares, weights.sum()))
                known += count * float(np.mean((told - truth) ** 2)) / repeats
        what = f"{survey.protocol.name} ({survey.bytes_per_report} bytes), {size} values, n = {count:.0e}"
        exact = survey.protocol.variance
        rows.append(Row(f"{what}, by its law", "theory 3.68", BEST / exact, 1 / 1.025, f"{exact:.3f}", f"{BEST:.3f}"))
        rows.append(Row(f"{what}, raw", "theory 3.68", BEST / raw, 1 / 1.025, f"{raw:.3f}", f"{BEST:.3f}"))
        bar = 1.7 if size == 100 else None
        rows.append(Row(f"{what}, consistent", "theory 3.68", BEST / kept, bar, f"{kept:.3f}", f"{BEST:.3f}"))
        if size == 100:
            rows.append(Row(f"{what}, law known", "theory 3.68", BEST / known, None, f"{known:.3f}", f"{BEST:.3f}"))
    return rows


def _told_the_law(shares: Shares, total: float) -> NDArray[np.float64]:
    """The posterior mean of each share, where all are known to be rank^-1.1 / total, of ranks from 0.5 to 100.5."""
    atoms = np.linspace(0.5, 100.5, 2001) ** -1.1 / total
    truth, lie = float(shares.protocol.truth), float(shares.protocol.lie)
    support = lie + atoms * (truth - lie)
    variance = support * (1 - support) / (truth - lie) ** 2 / shares.reports
    exponent = -((shares.raw[:, None] - atoms) ** 2) / (2 * variance) - np.log(variance) / 2
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weights @ atoms / weights.sum(axis=1))


def numbers() -> list[Row]:
    rows = []
    for epsilon, bar in ((0.5, 16.67), (1.0, 4.289), (2.0, 1.042), (4.0, 0.2190)):
        found = worst_variance(numeric_by_name("hybrid", epsilon))
        rows.append(Row(f"hybrid mean, epsilon {epsilon:g}", "theory", bar / found, 0.9995, f"{found:.4f}", f"{bar:g}"))
    survey, distances = Distribution(between=(0, 1), epsilon=1.0), []
    for _ in range(20):
        values = np.random.default_rng().beta(5, 2, 100_000)
        density = survey.estimate(survey.reports(values))
        grid = np.linspace(0, 1, 2001)
        told = np.interp(grid, density.edges, np.concatenate([[0.0], np.cumsum(density.shares)]))
        distances.append(float(np.mean(np.abs(told - np.searchsorted(np.sort(values), grid, side="right") / 100_000))))
    found = float(np.mean(distances))
    rows.append(Row("Beta(5,2) by square waves, W1", "bar 0.005", 0.005 / found, 1.0, f"{found:.4f}", "0.005"))
    for share, bar in ((0.5, 1.678), (0.9, 3.890), (0.95, 4.744), (0.99, 6.638)):
        found = radius_quantile(share)
        rows.append(Row(f"planar Laplace radius {share:g}", "theory", bar / found, 0.999, f"{found:.4f}", f"{bar:g}"))
    return rows


def sizes() -> list[Row]:
    found = Frequency(range(100_000), epsilon=1.0).bytes_per_report
    return [Row("bytes of a report, 100,000 values", "bar 4", 4 / found, 1.0, str(found), "4")]


def decoding() -> list[Row]:
    survey = Frequency(range(1000), epsilon=1.0)
    batch = survey.reports(np.arange(1_000_000) % 1000)
    (seconds,) = best_cpu([lambda: survey.estimate(batch)], repeats=3)
    return [Row("a million reports of 1000 values decoded", "one second", 1 / seconds, 4.0, f"{seconds:.3f} s", "1 s")]


def shuffles() -> list[Row]:
    """The farthest from the shared reference, above it and below it, and the slowest of a million people."""
    price = {
        "krr_d100": lambda e, n, d: blanket.epsilon(e, n, d, categories=100),
        "clones21": shuffle.epsilon,
        "clones23": lambda e, n, d: shuffle.epsilon(e, n, d, spread=True),
    }
    ratios, slowest = [], 0.0
    for row in csv.DictReader(GOLDEN.read_text(encoding="utf-8").splitlines()):
        if row["area"] == "shuffle" and row["name"] in price:
            given = dict(part.split("=") for part in row["params"].split(","))
            start = time.process_time()
            found = price[row["name"]](float(given["eps0"]), int(given["n"]), float(given["delta"]))
            slowest = max(slowest, time.process_time() - start) if int(given["n"]) == 10**6 else slowest
            ratios.append(found / float(row["value"]))
    above, below = max(ratios) - 1, min(ratios) - 1
    return [
        Row("shuffle, farthest above the reference", "bar 1e-3", 1e-3 / max(above, 1e-12), 1.0, f"{above:.1e}", "1e-3"),
        Row("shuffle, never below it", "reference", 1 + min(0.0, below), 1 - 1e-8, f"{below:.1e}", "0"),
        Row("shuffle, slowest at n = 1e6", "one second", 1 / slowest, 1.0, f"{slowest:.2f} s", "1 s"),
    ]


def leaks() -> list[Row]:
    """The attacker on what two peers really draw: the epsilon it proves, over the one that was configured."""
    peers = (
        ("multi-freq-ldpy 0.2.5, subset", MULTI, LEAKY_SUBSET, 1.0, 4.4),
        ("pure-ldp 1.2.0, RAPPOR", PURE, LEAKY_RAPPOR, 2 * math.log(3), 5.0),
    )
    rows = []
    for name, requirements, code, configured, bar in peers:
        try:
            drawn = [np.array(answers) for answers in run(peer(*requirements), code)]
        except PeerUnavailable as reason:
            print(f"{name} is left out: {reason}\n")
            continue
        claim = guarantees.Pure(configured)
        verdict = audit.attack(_replayed(drawn), neighbors=(0, 1), claim=claim, runs=len(drawn[0]), batch=True)
        least = bar / configured if verdict.outcome is audit.Outcome.BROKEN else math.inf
        rows.append(
            Row(f"{name}: epsilon found", "configured", verdict.lower / configured, least,
                f"{verdict.lower:.2f}", f"{configured:.2f}")
        )  # fmt: skip
    return rows


def _replayed(drawn: list[NDArray[np.int64]]) -> Callable[[int, int], NDArray[np.int64]]:
    """Answers that were drawn before, each handed out once."""
    places = [0, 0]

    def answers(world: int, count: int) -> NDArray[np.int64]:
        start, places[world] = places[world], places[world] + count
        if places[world] > len(drawn[world]):
            raise ValueError("the attacker asked for more answers than were drawn")
        return drawn[world][start : places[world]]

    return answers


def audited() -> list[Row]:
    """Planar Laplace noise, which devices draw one by one; the other randomizers are attacked in the tests."""
    (entry,) = (entry for entry in own_entries() if entry.name == "local: location")
    verdict = entry.attack(runs=200_000, confidence=1 - 1e-6)
    claim = pure.epsilon(entry.build().event)
    held = verdict.outcome is audit.Outcome.CONSISTENT
    share = verdict.lower / claim if held else 0.0
    return [Row("planar Laplace: epsilon found", "claim", share, 0.85, f"{verdict.lower:.3f}", f"{claim:.3f}")]


def speed() -> list[Row]:
    peers = (
        ("pure-ldp 1.2.0", PURE, PURE_LDP),
        ("multi-freq-ldpy 0.2.5", MULTI, MULTI_FREQ),
    )
    rows = []
    for name, requirements, code in peers:
        try:
            theirs = run(peer(*requirements), code)
        except PeerUnavailable as reason:
            print(f"{name} is left out: {reason}\n")
            continue
        for protocol, (made, collected) in theirs.items():
            ours = _ours(protocol)
            rows.append(Row(f"{protocol}, made", name, made / ours[0], 50.0, _rate(ours[0]), _rate(made)))
            rows.append(
                Row(f"{protocol}, collected", name, collected / ours[1], 20.0, _rate(ours[1]), _rate(collected))
            )
        ours = _ours("projective")  # which no peer has: beside their protocol of the same error and the fewest bytes
        made, collected = theirs["local-hashing"]
        rows.append(Row("projective, made", f"{name} hashing", made / ours[0], None, _rate(ours[0]), _rate(made)))
        rows.append(
            Row("projective, collected", f"{name} hashing", collected / ours[1], 20.0, _rate(ours[1]), _rate(collected))
        )
    return rows


def _ours(protocol: str) -> tuple[float, float]:
    survey, count = Frequency(range(100), epsilon=1.0, protocol=protocol), 200_000
    values = np.arange(count) % 100
    batch = survey.reports(values)
    made, collected = best_cpu([lambda: survey.reports(values), lambda: survey.estimate(batch)], repeats=6)
    return made / count, collected / count


def _rate(seconds: float) -> str:
    return f"{1 / seconds:.2g} /s"


PIECES = {piece.__name__: piece for piece in (errors, numbers, sizes, decoding, shuffles, leaks, audited, speed)}
