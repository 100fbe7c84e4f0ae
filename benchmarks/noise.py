"""Exact secure noise, one million samples, against NumPy's insecure floats and OpenDP's exact vectors."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row, best_cpu
from mosha import noise

N: Final = 1_000_000
SCALES: Final = {"10": 10, "1000": 1000, "2**40": 2**40}
NUMPY_BARS: Final = {
    ("laplace", "10"): 1.0,
    ("laplace", "1000"): 1.0,
    ("laplace", "2**40"): 0.25,
    ("gaussian", "10"): 0.5,
    ("gaussian", "1000"): 0.5,
    ("gaussian", "2**40"): 0.25,
}
OPENDP_BAR: Final = 300.0

OPENDP: Final = """
import json, time
import opendp.prelude as dp
dp.enable_features("contrib")
rows = {}
zeros = [0] * 200_000
for law, metric, measure in (
    ("laplace", dp.l1_distance(T="i64"), dp.m.make_laplace),
    ("gaussian", dp.l2_distance(T="i64"), dp.m.make_gaussian),
):
    for name, scale in (("10", 10.0), ("1000", 1000.0), ("2**40", 2.0**40)):
        release = measure(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=scale)
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            release(zeros)
            best = min(best, time.process_time() - start)
        rows[f"{law} {name}"] = best / len(zeros)
print(json.dumps(rows))
"""


def main() -> list[Row]:
    floats = np.random.default_rng()
    ours = {"laplace": noise.discrete_laplace, "gaussian": noise.discrete_gaussian}
    theirs = {"laplace": floats.laplace, "gaussian": floats.normal}
    try:
        opendp = run(peer("opendp==0.16.0"), OPENDP)
    except PeerUnavailable as reason:
        print(f"opendp is left out: {reason}\n")
        opendp = {}
    rows = []
    for law, sample in ours.items():
        for name, scale in SCALES.items():
            mine, numpys = best_cpu(
                [lambda s=scale: sample(s, N), lambda s=scale: theirs[law](0.0, s, N)],  # type: ignore[misc, operator]  # noqa: B023 - called at once
                repeats=9,
            )
            what = f"{law}, scale {name}"
            rows.append(Row(what, "numpy", numpys / mine, NUMPY_BARS[law, name], rate(mine / N), rate(numpys / N)))
            if (each := opendp.get(f"{law} {name}")) is None:
                continue
            rows.append(Row(what, "opendp 0.16.0", each * N / mine, OPENDP_BAR, rate(mine / N), rate(each)))
    return [*rows, *small_calls()]


def small_calls() -> list[Row]:
    """What one number costs, and a thousand, in single numbers of NumPy's (shown, no bar)."""
    floats = np.random.default_rng()
    calls = 2000
    one, numpy_one, thousand, numpy_thousand = best_cpu(
        [
            lambda: [noise.discrete_laplace(10) for _ in range(calls)],
            lambda: [floats.laplace(0.0, 10.0) for _ in range(calls)],
            lambda: [noise.discrete_laplace(10, 1000) for _ in range(calls // 10)],
            lambda: [floats.laplace(0.0, 10.0, 1000) for _ in range(calls // 10)],
        ]
    )
    return [
        Row("laplace, one number", "numpy", numpy_one / one, None, micro(one / calls), micro(numpy_one / calls)),
        Row(
            "laplace, 1000 numbers",
            "numpy",
            numpy_thousand / thousand,
            None,
            micro(thousand / (calls // 10)),
            micro(numpy_thousand / (calls // 10)),
        ),
    ]


def rate(seconds: float) -> str:
    return f"{1e-6 / seconds:.3g} M/s"


def micro(seconds: float) -> str:
    return f"{seconds * 1e6:.3g} us"
