"""A scorecard: bins from private quantiles, a private logistic regression on them, calibration and fairness by group.

    python examples/gallery/credit.py [--small] [--pictures FOLDER]

Reads adult.data.gz and adult.test.gz (UCI, CC BY 4.0) from $MOSHA_DATA/adult: who earns more than 50,000 stands for who
pays back. `--small` draws applicants of its own. Half of the budget finds the bins, half trains.
"""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
from canvas import DATA, Sheet, show, wallet

import mosha
from mosha.learning import Categories, Columns, Cuts, LogisticRegression

NUMBERS = {"age": (17, 90), "education": (1, 16), "hours": (1, 99)}
RANKS = (0.2, 0.4, 0.6, 0.8)
EPSILONS = (0.5, 1.0, 4.0)
FEATURES = ("age", "education", "hours", "married", "sex")


def read_people(name: str) -> dict[str, Any]:
    """Columns of the Adult table."""
    with gzip.open(DATA / "adult" / name, "rt") as file:
        rows = [line.strip().rstrip(".").split(", ") for line in file if line[:1].isdigit() and line.count(",") == 14]
    columns = list(zip(*rows, strict=True))
    numbers = {"age": 0, "education": 4, "hours": 12}
    return {
        **{key: np.array(columns[place], np.float64) for key, place in numbers.items()},
        "married": np.array(["yes" if "Married" in word else "no" for word in columns[5]]),
        "sex": np.array(columns[9]),
        "good": np.array(["yes" if word == ">50K" else "no" for word in columns[14]]),
    }


def draw_people(count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Applicants for a small run."""
    age, education = rng.integers(17, 91, count).astype(float), rng.integers(1, 17, count).astype(float)
    hours, married = rng.integers(1, 100, count).astype(float), rng.choice(["yes", "no"], count)
    odds = -6 + 0.03 * age + 0.25 * education + 0.02 * hours + (married == "yes")
    good = np.where(rng.random(count) < 1 / (1 + np.exp(-odds)), "yes", "no")
    sex = rng.choice(["Male", "Female"], count)
    return {"age": age, "education": education, "hours": hours, "married": married, "sex": sex, "good": good}


def find_cuts(people: dict[str, Any], epsilon: float) -> dict[str, list[float]]:
    """Where the bins end: private quantiles of each number, the price shared by all of them."""
    row = mosha.Person("who", at_most=1)
    data = {"who": np.arange(len(people["age"])), **{name: people[name] for name in NUMBERS}}
    table = mosha.protect(data, unit=row, account=wallet(row, epsilon))
    each, found = epsilon / (len(NUMBERS) * len(RANKS)), {}
    for name, between in NUMBERS.items():
        asked = [table.quantile(name, rank, between=between, bars="rows") for rank in RANKS]
        ends = [float(question.release(epsilon=each * 0.999).value) for question in asked]
        found[name] = sorted({round(end) for end in ends if between[0] < round(end) < between[1]})
    return found  # type: ignore[return-value]


def score(people: dict[str, Any], tested: dict[str, Any], epsilon: float | None) -> np.ndarray:
    """The probability of a good outcome for everybody who is tested."""
    if epsilon is None:
        cuts = {name: sorted({round(np.quantile(people[name], rank)) for rank in RANKS}) for name in NUMBERS}
    else:
        cuts = find_cuts(people, epsilon / 2)
    schema = Columns(
        {
            **{name: Cuts(*ends) for name, ends in cuts.items()},
            "married": Categories(["yes", "no"]),
            "sex": Categories(["Male", "Female"]),
        }
    )
    rows, asked = (np.asarray(schema.matrix({name: who[name] for name in FEATURES})) for who in (people, tested))
    if epsilon is None:
        return 1 / (1 + np.exp(-asked @ fit_in_the_open(rows, people["good"] == "yes")))
    model = LogisticRegression(
        classes=("no", "yes"), examples=len(people["age"]), norm=schema.norm, fit_intercept=False,
        epsilon=epsilon / 2, delta=1e-6,
    )  # fmt: skip
    model.fit(rows, people["good"], account=wallet(mosha.Example(), epsilon / 2, 1e-6))
    return np.asarray(model.predict_proba(asked))[:, 1]


def fit_in_the_open(rows: np.ndarray, good: np.ndarray) -> np.ndarray:
    """An ordinary logistic regression, by Newton's steps."""
    weights = np.zeros(rows.shape[1])
    for _ in range(12):
        chances = 1 / (1 + np.exp(-rows @ weights))
        curve = rows.T @ (rows * (chances * (1 - chances))[:, None]) + 1e-3 * np.eye(rows.shape[1])
        weights += np.linalg.solve(curve, rows.T @ (good - chances) - 1e-3 * weights)
    return weights


def measure(scores: np.ndarray, tested: dict[str, Any]) -> dict[str, float]:
    """How well scores rank, how far they are from what happened, and how groups fare."""
    good = tested["good"] == "yes"
    ranks = np.argsort(np.argsort(scores)) + 1
    area = (ranks[good].sum() - good.sum() * (good.sum() + 1) / 2) / (good.sum() * (~good).sum())
    bins = np.digitize(scores, np.linspace(0, 1, 11)[1:-1])
    gaps = [abs(scores[bins == b].mean() - good[bins == b].mean()) * np.mean(bins == b) for b in np.unique(bins)]
    approved = scores > np.quantile(scores, 0.7)
    rates = [approved[(tested["sex"] == sex) & good].mean() for sex in ("Male", "Female")]
    return {"area": float(area), "calibration": float(sum(gaps)), "gap": float(rates[0] - rates[1])}


def attack(people: dict[str, Any], tested: dict[str, Any], epsilon: float | None) -> float:
    """The advantage of an attacker who calls those members whose outcome the model finds likely (100 are)."""
    few = {name: column[:100] for name, column in people.items()}
    both = {name: np.concatenate([few[name], tested[name][:100]]) for name in few}
    scores = score(few, both, epsilon)
    likely = np.where(both["good"] == "yes", scores, 1 - scores)
    found = mosha.audit.membership_attack(None, None, np.arange(200) < 100, scores=np.log(np.maximum(likely, 1e-9)))
    return float(found.advantage)


def run(*, small: bool) -> dict[str, Any]:
    rng = np.random.default_rng()
    people = draw_people(1500, rng) if small else read_people("adult.data.gz")
    tested = draw_people(1000, rng) if small else read_people("adult.test.gz")
    found: dict[str, Any] = {"people": len(people["age"]), "curves": {}}
    for epsilon in (None, *EPSILONS):
        name = "in the open" if epsilon is None else f"epsilon {epsilon:g}"
        scores = score(people, tested, epsilon)
        for what, value in measure(scores, tested).items():
            found[f"{name}: {what}"] = value
        found[f"{name}: advantage of a membership attacker"] = attack(people, tested, epsilon)
        bins = np.digitize(scores, np.linspace(0, 1, 11)[1:-1])
        good = tested["good"] == "yes"
        found["curves"][name] = [(scores[bins == b].mean(), good[bins == b].mean()) for b in np.unique(bins)]
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    left, right = sheet.axes
    names = ["in the open", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)]
    labels = [sheet.word("not private", "不加保护"), *(sheet.word(f"epsilon {e:g}", f"ε={e:g}") for e in EPSILONS)]
    left.plot([0, 1], [0, 1], ":", color=sheet.look["pale"])
    for color, name, label in zip((sheet.look["pale"], *sheet.colors[:3]), names, labels, strict=True):
        across, up = np.array(found["curves"][name]).T
        left.plot(across, up, "o-", ms=3, color=color, label=label)
    title = sheet.word("Calibration", "校准")
    sheet.title(left, title, sheet.word("score", "得分"), sheet.word("good outcomes", "实际好结果的比例"))
    sheet.legend(left)
    words = {"area": ("area under the curve", "AUC"), "gap": ("gap between groups", "组间差距")}
    for place, (what, label) in enumerate(words.items()):
        heights = [found[f"{name}: {what}"] for name in names]
        across = np.arange(len(names)) + (place - 0.5) * 0.38
        right.bar(across, heights, 0.36, color=sheet.colors[place], label=sheet.word(*label))
    right.set_xticks(range(len(names)), labels)
    right.set_ylim(0, 1.15)
    sheet.title(right, sheet.word("Ranking and fairness", "排序能力与公平"))
    sheet.legend(right, ncols=2)


if __name__ == "__main__":
    show("credit", run, draw)
