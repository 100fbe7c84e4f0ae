"""A genome study: which places go with a disease, and who took part.

    python examples/gallery/genomics.py [--small] [--pictures FOLDER]

Genomes are drawn from a population with known allele frequencies; three places raise the risk. The study releases its
top places (neighbor-distance score) and allele frequencies; the attack of Homer et al. asks who was in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from canvas import Sheet, show

import mosha
from mosha import audit, mechanisms

CAUSES = 3
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)


def study(people: int, places: int, risk: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows (case or control, genotypes) of equally many cases and controls, and the frequencies at large."""
    frequencies = rng.uniform(0.1, 0.5, places)
    rows = []
    for case in (1, 0):
        raised = frequencies.copy()
        raised[:CAUSES] += risk * case
        rows.append(np.column_stack([np.full(people // 2, case), rng.binomial(2, raised, (people // 2, places))]))
    return np.vstack(rows), frequencies


def rank(rows: np.ndarray, places: int, epsilon: float, threshold: float) -> tuple[list[int], list[int]]:
    """The top places in private, and in the open."""
    half = len(rows) // 2
    names = list(range(places))
    score = mechanisms.AssociationScores(snps=names, cases=half, controls=half, threshold=threshold)
    account = mosha.Ledger.memory().account("study", unit=mosha.Row(), epsilon=epsilon)
    with account.open(mechanisms.report_noisy_max(score, unit=mosha.Row(), epsilon=epsilon, top=CAUSES)) as run:
        private = [place["choice"] for place in run.step(rows).value]
    exact = np.argsort(-score.evaluate(rows, mosha.Row()))[:CAUSES].tolist()
    return private, exact


def attack(places: int, epsilon: float | None, rng: np.random.Generator, people: int) -> tuple[float, Any]:
    """The advantage of Homer's attacker against allele frequencies of `people`, and the scores."""
    frequencies = rng.uniform(0.1, 0.5, places)
    candidates = rng.binomial(2, frequencies, (2 * people, places))
    included = audit.draw_inclusion(2 * people)
    members = candidates[included]
    rows = np.column_stack([np.zeros(len(members)), members])
    counts = mechanisms.AlleleCounts(snps=range(places))
    if epsilon is None:
        released = counts.evaluate(rows, mosha.Row())
    else:
        account = mosha.Ledger.memory().account("f", unit=mosha.Row(), epsilon=epsilon, delta=1e-6)
        with account.open(mechanisms.additive(counts, unit=mosha.Row(), epsilon=epsilon, delta=1e-6)) as run:
            released = run.step(rows).value
    scores = audit.score_genomes(candidates, published=np.asarray(released) / (2 * people), reference=frequencies)
    found = audit.membership_attack(None, None, included, scores=scores)
    return found.advantage, (scores, included)


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    people, places, risk = (600, 200, 0.4) if small else (2000, 2000, 0.16)
    rows, _ = study(people, places, risk, rng)
    found: dict[str, Any] = {}
    for epsilon in EPSILONS:
        hits = [len(set(rank(rows, places, epsilon, 24.0)[0]) & set(range(CAUSES))) for _ in range(5)]
        found[f"causes found of {CAUSES}, epsilon {epsilon:g}"] = float(np.mean(hits))
    found["causes found in the open"] = float(len(set(rank(rows, places, 1.0, 24.0)[1]) & set(range(CAUSES))))
    half = people // 2
    chi = mechanisms.ChiSquares(snps=[0], cases=half, controls=half)
    found["one person moves a chi-square by"] = chi.sensitivity(mosha.Row()).l1 * chi.grid
    attacked, members = (500, 100) if small else (5000, 300)
    for epsilon in (None, 1.0, 4.0):
        name = "in the open" if epsilon is None else f"at epsilon {epsilon:g}"
        found[f"advantage of Homer's attacker, {name}"], found[f"scores {name}"] = attack(
            attacked, epsilon, rng, members
        )
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    hits = [found[f"causes found of {CAUSES}, epsilon {epsilon:g}"] for epsilon in EPSILONS]
    left.plot(EPSILONS, hits, "o-", color=sheet.colors[0])
    sheet.mark(left, EPSILONS)
    left.axhline(found["causes found in the open"], color=sheet.look["pale"], ls="--")
    left.set_ylim(-0.1, CAUSES + 0.2)
    across, up = sheet.word("epsilon", "ε"), sheet.word("of three causes", "三个致病位点中")
    sheet.title(left, sheet.word("Places found, by epsilon", "找到的位点数"), across, up)
    names = {"in the open": ("published as they are", "原样公布"), "at epsilon 1": ("epsilon 1", "ε=1")}
    for color, (name, label) in zip(sheet.colors[1:3], names.items(), strict=True):
        scores, included = found[f"scores {name}"]
        scaled = (scores - np.mean(scores)) / np.std(scores)
        for inside, style in ((True, "-"), (False, ":")):
            heights, ends = np.histogram(scaled[included == inside], bins=15, density=True)
            who = sheet.word("in", "在内") if inside else sheet.word("not in", "不在内")
            text = f"{sheet.word(*label)}, {who}"
            right.plot((ends[1:] + ends[:-1]) / 2, heights, style, color=color, label=text)
    sheet.title(
        right,
        sheet.word("Homer's attack on frequencies", "Homer 攻击：等位基因频率"),
        sheet.word("score (standard deviations)", "得分（标准差）"),
        sheet.word("density", "密度"),
    )
    sheet.legend(right, above=True)


if __name__ == "__main__":
    show("genomics", run, draw)
