"""Private models without PyTorch: logistic regression on Adult beside diffprivlib, scattering features on MNIST.

Shares of right answers are compared with the bars of the project (a ratio above 1 clears), CPU times with the peer's.
The pictures take minutes: `python -m benchmarks learning_models:census` leaves them out.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row
from examples import learning_adult as adult
from examples import learning_scattering as scattering
from mosha import Example, Ledger

ADULT_BARS: Final = {1.0: 0.846, 0.1: 0.835}
PICTURE_BARS: Final = {
    "MNIST": {2.93: 0.986, 1.0: 0.981},
    "Fashion-MNIST": {2.93: 0.900, 1.0: 0.881},
}
DEBIAN: Final = Path("/usr/share/datasets/fashion-mnist")
RUNS: Final = 5
PICTURE_SECONDS: Final = 300.0

DIFFPRIVLIB: Final = """
import json, sys, time, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
rows = {}
for epsilon in (1.0, 0.1):
    for strength in (1.0, 0.01, 0.001):
        scores, start = [], time.process_time()
        for _ in range(5):
            model = LogisticRegression(epsilon=epsilon, data_norm=float(data["norm"]), C=strength, max_iter=200)
            model.fit(data["rows"], data["labels"])
            scores.append(model.score(data["others"], data["truth"]))
        rows[f"{epsilon:g} {strength:g}"] = [float(np.mean(scores)), (time.process_time() - start) / 5]
print(json.dumps(rows))
"""


def census() -> list[Row]:
    home = adult.folder()
    if not home.exists():
        print("Adult is left out: the data are not here (set MOSHA_DATA)\n")
        return []
    (table, labels), (public, truth) = adult.read(home / "adult.data.gz"), adult.read(home / "adult.test.gz")
    rows, others = adult.SCHEMA.matrix(table), adult.SCHEMA.matrix(public)
    theirs = _diffprivlib(rows, labels, others, truth)
    found = []
    for epsilon, bar in ADULT_BARS.items():
        scores, start = [], time.process_time()
        for _ in range(RUNS):
            account = Ledger.memory().account(
                "census", unit=Example(), epsilon=epsilon, delta=adult.DELTA, rule="gaussian", delta_for_events=1e-12
            )
            scores.append(adult.model(epsilon).fit(rows, labels, account=account).score(others, truth))
        seconds, share = (time.process_time() - start) / RUNS, float(np.mean(scores))
        what = f"Adult, epsilon {epsilon:g}"
        found.append(Row(what, "the bar", share / bar, 1.0, f"{share:.2%}", f"{bar:.1%}"))
        found.append(Row(f"{what}, CPU seconds", "one second", 1 / seconds, 1.0, f"{seconds:.2f} s", "1 s"))
        for name, (other, took) in theirs.items():
            if name.startswith(f"{epsilon:g} "):
                whom = f"diffprivlib 0.6.6, C = {name.split()[1]} ({took:.2f} s, pure epsilon)"
                found.append(Row(what, whom, share / other, None, f"{share:.2%}", f"{other:.2%}"))
    return found


def _diffprivlib(rows: Any, labels: Any, others: Any, truth: Any) -> dict[str, list[float]]:
    """The peer on the very same features: for each epsilon and strength, the share of right answers and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.npz"
        positive = lambda said: np.array(said) == ">50K"
        np.savez(path, rows=rows, labels=positive(labels), others=others, truth=positive(truth), norm=adult.SCHEMA.norm)
        try:
            return run(peer("diffprivlib==0.6.6", "scikit-learn==1.7.2"), DIFFPRIVLIB, path)
        except PeerUnavailable as reason:
            print(f"diffprivlib is left out: {reason}\n")
            return {}


def pictures() -> list[Row]:
    found, digits = [], scattering.folder()
    clothes = digits.with_name("fashion-mnist")
    for name, home in (("MNIST", digits), ("Fashion-MNIST", clothes if clothes.exists() else DEBIAN)):
        if not home.exists():
            print(f"{name} is left out: {home} is not here\n")
            continue
        features, start = scattering.features_of(home), time.process_time()
        (images, labels), (others, truth) = scattering.read(home, "train"), scattering.read(home, "t10k")
        rows, tests = features(images), features(others)
        making = time.process_time() - start
        for epsilon, bar in PICTURE_BARS[name].items():
            start = time.process_time()
            account = Ledger.memory().account("p", unit=Example(), epsilon=epsilon, delta=scattering.DELTA, rule="pure")
            fitted = scattering.model(epsilon, features).fit(rows, labels, account=account)
            seconds = making + time.process_time() - start
            share, what = fitted.score(tests, truth), f"{name}, epsilon {epsilon:g}"
            found.append(Row(what, "the bar", share / bar, 1.0, f"{share:.2%}", f"{bar:.1%}"))
            limit = f"{PICTURE_SECONDS:.0f} s"
            found.append(Row(f"{what}, CPU", limit, PICTURE_SECONDS / seconds, 1.0, f"{seconds:.0f} s", limit))
    return found


PIECES = {"census": census, "pictures": pictures}
