"""Classic models beside diffprivlib on its own examples and on Adult: accuracy at the same pure epsilon and bounds.

Both are given the same rows and the same bounds: those of the public data set, as diffprivlib's notebooks have them.
Medians of 20 fits (Adult: 3); a ratio above 1 is better than the peer. Classifiers: accuracy on rows that were
held back; KMeans: squared distances; PCA: variance kept by two components; StandardScaler: error of the means;
regression: squared error, of our Ridge and their LinearRegression. `models:small` leaves Adult out.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks._peers import peer, run
from benchmarks._rows import Row
from examples import learning_adult as adult
from mosha import Example, Ledger, models

EPSILONS: Final = (1.0, 5.0)
RUNS: Final = {"small": 20, "adult": 3}
NUMBERS: Final = ("age", "education-num", "hours-per-week", "capital-gain", "capital-loss")
PUBLIC: Final = ((17, 90), (1, 16), (1, 99), (0, 99_999), (0, 4356))

PEER: Final = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from diffprivlib import models as m
data, runs, epsilons = np.load(sys.argv[1], allow_pickle=True), int(sys.argv[2]), json.loads(sys.argv[3])
found = {}
names = sorted({key.split("/")[0] for key in data.files})
for name in names:
    X, y, others, truth = (data[f"{name}/{part}"] for part in ("X", "y", "others", "truth"))
    low, high = data[f"{name}/low"], data[f"{name}/high"]
    bounds = (low, high)
    kinds = list(data[f"{name}/kinds"])
    for epsilon in epsilons:
        for kind in kinds:
            scores = []
            for _ in range(runs):
                if kind == "GaussianNB":
                    model = m.GaussianNB(epsilon=epsilon, bounds=bounds)
                elif kind == "RandomForestClassifier":
                    labels = sorted(set(y.tolist()))
                    model = m.RandomForestClassifier(epsilon=epsilon, bounds=bounds, classes=labels, n_estimators=10)
                elif kind == "DecisionTreeClassifier":
                    labels = sorted(set(y.tolist()))
                    model = m.DecisionTreeClassifier(epsilon=epsilon, bounds=bounds, classes=labels, max_depth=3)
                elif kind == "LinearRegression":
                    edges = (float(y.min()), float(y.max()))
                    model = m.LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=edges)
                elif kind == "KMeans":
                    model = m.KMeans(epsilon=epsilon, bounds=bounds, n_clusters=len(set(y.tolist())))
                elif kind == "PCA":
                    norm = float(np.linalg.norm(np.maximum(abs(low), abs(high))))
                    model = m.PCA(epsilon=epsilon, bounds=bounds, n_components=2, data_norm=norm)
                elif kind == "StandardScaler":
                    model = m.StandardScaler(epsilon=epsilon, bounds=bounds)
                if kind in ("KMeans", "PCA", "StandardScaler"):
                    model.fit(X)
                else:
                    model.fit(X, y)
                if kind == "KMeans":
                    centers = model.cluster_centers_
                    scores.append(float((((others[:, None] - centers) ** 2).sum(axis=2)).min(axis=1).sum()))
                elif kind == "PCA":
                    kept = (others - others.mean(axis=0)) @ model.components_.T
                    scores.append(float((kept ** 2).sum() / ((others - others.mean(axis=0)) ** 2).sum()))
                elif kind == "StandardScaler":
                    scores.append(float(np.abs(model.mean_ - X.mean(axis=0)).mean()))
                elif kind == "LinearRegression":
                    scores.append(float(((model.predict(others) - truth) ** 2).mean()))
                else:
                    scores.append(float((model.predict(others) == truth).mean()))
            found[f"{name}/{kind}/{epsilon:g}"] = scores
print(json.dumps(found))
"""
LESS_IS_BETTER: Final = {"KMeans", "StandardScaler", "LinearRegression"}


def _split(rows: Any, targets: Any) -> tuple[Any, ...]:
    order = np.random.default_rng(0).permutation(len(rows))
    cut = len(rows) // 5
    return rows[order[cut:]], targets[order[cut:]], rows[order[:cut]], targets[order[:cut]]


def _small_sets() -> dict[str, tuple]:
    from sklearn import datasets

    found = {}
    for name, load in (
        ("iris", datasets.load_iris),
        ("wine", datasets.load_wine),
        ("breast cancer", datasets.load_breast_cancer),
        ("diabetes", datasets.load_diabetes),
    ):
        rows, targets = load(return_X_y=True)
        scaled = (rows - rows.min(axis=0)) / (rows.max(axis=0) - rows.min(axis=0)) * 2 - 1
        kinds = ["GaussianNB", "RandomForestClassifier", "DecisionTreeClassifier", "KMeans", "PCA", "StandardScaler"]
        found[name] = (*_split(scaled, targets), ["LinearRegression"] if name == "diabetes" else kinds)
    return found


def _census() -> dict[str, tuple]:
    home = adult.folder()
    if not home.exists():
        print("Adult is left out: the data are not here (set MOSHA_DATA)\n")
        return {}
    parts = []
    for file in ("adult.data.gz", "adult.test.gz"):
        table, labels = adult.read(home / file)
        rows = np.column_stack([np.array(table[name], float) for name in NUMBERS])
        low, high = (np.array(side, float) for side in zip(*PUBLIC, strict=True))
        parts += [(rows - low) / (high - low) * 2 - 1, (np.array(labels) == ">50K").astype(int)]
    kinds = ["GaussianNB", "RandomForestClassifier", "DecisionTreeClassifier", "KMeans", "PCA", "StandardScaler"]
    return {"Adult": (*parts, kinds)}


def _fit(kind: Any, rows: Any, targets: Any, epsilon: Any) -> Any:
    """Our model of this kind; the purse holds exactly its price."""
    account = Ledger.memory().account("bench", unit=Example(), epsilon=epsilon)
    labels = tuple(sorted(set(targets.tolist())))
    make = {
        "GaussianNB": lambda: models.GaussianNB(classes=labels, between=(-1, 1), epsilon=epsilon),
        "RandomForestClassifier": lambda: models.RandomForestClassifier(
            classes=labels, between=(-1, 1), n_estimators=10, epsilon=epsilon
        ),
        "DecisionTreeClassifier": lambda: models.DecisionTreeClassifier(
            classes=labels, between=(-1, 1), depth=3, epsilon=epsilon
        ),
        "KMeans": lambda: models.KMeans(n_clusters=len(labels), between=(-1, 1), epsilon=epsilon),
        "PCA": lambda: models.PCA(n_components=2, between=(-1, 1), epsilon=epsilon),
        "StandardScaler": lambda: models.StandardScaler(between=(-1, 1), epsilon=epsilon),
        "LinearRegression": lambda: models.Ridge(
            between=(-1, 1), target=(float(targets.min()), float(targets.max())), epsilon=epsilon
        ),
    }
    learnt = (rows, targets) if kind in LEARNT else (rows,)
    return make[kind]().fit(*learnt, account=account)  # type: ignore[attr-defined]


LEARNT: Final = {"GaussianNB", "RandomForestClassifier", "DecisionTreeClassifier", "LinearRegression"}


def _score(kind: Any, model: Any, rows: Any, others: Any, truth: Any) -> float:
    if kind == "KMeans":
        return float((((others[:, None] - model.cluster_centers_) ** 2).sum(axis=2)).min(axis=1).sum())
    if kind == "PCA":
        kept = (others - others.mean(axis=0)) @ model.components_.T
        return float((kept**2).sum() / ((others - others.mean(axis=0)) ** 2).sum())
    if kind == "StandardScaler":
        return float(np.abs(model.mean_ - rows.mean(axis=0)).mean())
    if kind == "LinearRegression":
        return float(((model.predict(others) - truth) ** 2).mean())
    return float((model.predict(others) == truth).mean())


def _compare(sets: dict[str, tuple], runs: int) -> list[Row]:
    if not sets:
        return []
    theirs = _ask_peer(sets, runs)
    found = []
    for name, (rows, targets, others, truth, kinds) in sets.items():
        for kind in kinds:
            for epsilon in EPSILONS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fits = (_fit(kind, rows, targets, epsilon) for _ in range(runs))
                    own = float(np.median([_score(kind, model, rows, others, truth) for model in fits]))
                other = float(np.median(theirs[f"{name}/{kind}/{epsilon:g}"]))
                ratio = other / own if kind in LESS_IS_BETTER else own / other
                what = f"{name}, {'Ridge' if kind == 'LinearRegression' else kind}, epsilon {epsilon:g}"
                found.append(Row(what, "diffprivlib 0.6.6", ratio, 1.0, f"{own:.4g}", f"{other:.4g}"))
    return found


def _ask_peer(sets: dict[str, tuple], runs: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sets.npz"
        held: dict[str, Any] = {}
        for name, (rows, targets, others, truth, kinds) in sets.items():
            held |= {f"{name}/X": rows, f"{name}/y": targets, f"{name}/others": others, f"{name}/truth": truth}
            held |= {f"{name}/low": np.full(rows.shape[1], -1.0), f"{name}/high": np.full(rows.shape[1], 1.0)}
            held[f"{name}/kinds"] = np.array(kinds)
        np.savez(path, **held)
        return run(peer("diffprivlib==0.6.6", "scikit-learn==1.7.2"), PEER, path, runs, list(EPSILONS))


def small() -> list[Row]:
    return _compare(_small_sets(), RUNS["small"])


def census() -> list[Row]:
    return _compare(_census(), RUNS["adult"])


PIECES = {"small": small, "census": census}
