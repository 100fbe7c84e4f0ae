"""Other people's synthesizers of tables: mbi's AIM and MST, those of dpmm, and smartnoise-synth's MST.

mbi keeps its mechanisms outside of its package: MOSHA_MBI names a checkout of its repository, and MOSHA_JAX the JAX
that a checkout of some age needs, such as jax==0.6.2.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._tables import Coded

__all__ = ["PEERS", "ask_peer"]

PEERS: dict[str, float | None] = {
    "mbi MST": 20.0, "mbi AIM": 100.0, "dpmm MST": None, "dpmm AIM": None, "smartnoise MST": None,
}  # fmt: skip
"""How many times less CPU ours is meant to take."""

READ = """
import json, sys, time
import numpy as np, pandas as pd
kind, place, epsilon, delta = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
rows, sizes = pd.read_csv(place + "/rows.csv"), json.load(open(place + "/sizes.json"))
start = time.process_time()
"""

WRITE = """
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "table": {c: np.asarray(made[c]).astype(int).tolist() for c in sizes}}))
"""

MBI = """
import itertools, os
sys.path[:0] = [os.path.join(sys.argv[5], "src"), os.path.join(sys.argv[5], "mechanisms")]
from mbi import Dataset, Domain
try:
    data = Dataset({c: rows[c].to_numpy() for c in sizes}, Domain.fromdict(sizes))
except AttributeError:  # versions of 2025 take a frame
    data = Dataset(rows, Domain.fromdict(sizes))
start = time.process_time()
if kind == "mbi MST":
    from mst import MST
    made = MST(data, epsilon, delta)
else:
    from aim import AIM
    workload = [(pair, 1.0) for pair in itertools.combinations(data.domain, 2)]
    made = AIM(epsilon, delta, max_model_size=80).run(data, workload)[1]
made = made.to_dict() if hasattr(made, "to_dict") else made.df
"""

DPMM = """
if kind == "dpmm MST":
    from dpmm.models.mst import MSTGM
    model = MSTGM(epsilon=epsilon, delta=delta)
else:
    from dpmm.models.aim import AIMGM
    model = AIMGM(epsilon=epsilon, delta=delta, max_model_size=1)
model.set_domain(sizes)
model.set_random_state(np.random.RandomState())
model.fit(rows)
made = model.generate(len(rows))
"""

SMARTNOISE = """
from snsynth import Synthesizer
made = Synthesizer.create("mst", epsilon=epsilon, delta=delta).fit_sample(
    rows, categorical_columns=list(sizes), preprocessor_eps=0.0)
"""


def ask_peer(kind: str, coded: Coded, epsilon: float, delta: float) -> dict[str, Any]:
    """A table of a peer, and its CPU seconds; stopped after MOSHA_PEER_SECONDS of the clock, 900 where not given."""
    checkout = os.environ.get("MOSHA_MBI", "")
    library = kind.partition(" ")[0]
    if library == "mbi" and not (Path(checkout) / "mechanisms").is_dir():
        raise PeerUnavailable("MOSHA_MBI names no checkout of mbi")
    python, code = {
        "mbi": (
            lambda: peer(
                os.environ.get("MOSHA_JAX", "jax>=0.9.0"),
                "optax",
                "networkx",
                "attrs",
                "chex",
                "scipy",
                "pandas",
                "matplotlib",
            ),
            MBI,
        ),
        "dpmm": (lambda: peer("dpmm==0.1.9"), DPMM),
        "smartnoise": (lambda: peer("smartnoise-synth==1.0.8"), SMARTNOISE),
    }[library]
    with tempfile.TemporaryDirectory() as place:
        names = list(coded[1])
        np.savetxt(Path(place) / "rows.csv", np.stack([coded[0][n] for n in names], axis=1), fmt="%d", delimiter=",",
                   header=",".join(names), comments="")  # fmt: skip
        (Path(place) / "sizes.json").write_text(json.dumps(coded[1]))
        most = float(os.environ.get("MOSHA_PEER_SECONDS", "900"))
        answer: dict[str, Any] = run(python(), READ + code + WRITE, kind, place, epsilon, delta, checkout, at_most=most)
        return answer
