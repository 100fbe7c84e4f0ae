"""The six roads of ARCHITECTURE.md: the files that a call passes, in the order in which it enters them.

Each road is walked once so that everything is imported, and traced the second time.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tests.house.source import PACKAGE

Road = Callable[[Path], Callable[[int], object]]


def _query(folder: Path) -> Callable[[int], object]:
    """`mosha.query` on a DuckDB table: COUNT and AVG by a key."""
    import mosha

    path = folder / "visits.csv"
    rows = (f"{n % 40},{'abc'[n % 3]},{n % 9}" for n in range(200))
    path.write_text("\n".join(["person,ward,days", *rows]), encoding="utf-8")
    unit = mosha.Person("person", at_most=5)
    account = mosha.Ledger(folder / "query.db").account("visits", unit=unit, epsilon=10)
    visits = mosha.protect(path, unit=unit, account=account)
    text = "SELECT ward, COUNT(*) AS n, AVG(days) AS d FROM visits WHERE days BETWEEN 0 AND 9 GROUP BY ward"
    keys, ranges = {"ward": ["a", "b", "c"]}, {"days": (0, 9)}

    def ask(_number: int) -> object:
        return mosha.query(text, visits=visits, epsilon=1, keys=keys, ranges=ranges)

    return ask


def _stream(folder: Path) -> Callable[[int], object]:
    """A step of a stream counter that was paid once."""
    import mosha

    counter = mosha.streams.counter(unit=mosha.Reading(), horizon=64, epsilon=1)
    run = mosha.Ledger(folder / "stream.db").account("door", unit=mosha.Reading(), epsilon=1).open(counter)
    return lambda number: run.step([1] * number)


def _training(folder: Path) -> Callable[[int], object]:
    """A step of DP-SGD on a network of two layers."""
    import torch

    import mosha

    plan = mosha.learning.DPSGD(steps=8, rate=0.1, clip=1.0, batch=20).calibrate(epsilon=2, delta=1e-5)
    inputs = torch.randn(200, 6)
    labels = (inputs[:, 0] > 0).long()
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    loss = torch.nn.CrossEntropyLoss(reduction="none")
    account = mosha.Ledger(folder / "training.db").account("digits", unit=mosha.Example(), epsilon=2, delta=1e-5)
    steps = iter(plan.train(network, (inputs, labels), loss, optimizer, account=account))
    return lambda _number: next(steps)


def _flower(folder: Path) -> Callable[[int], object]:
    """Two rounds of Flower with the noise at the server, five nodes in this process."""
    import numpy as np

    import mosha
    from tests.federated.flower_grid import Nodes, app, model, towards

    plan = mosha.federated.ServerSide(rounds=2, clients=5, clip=1.0, noise_multiplier=1.0, delta=1e-4)
    account = mosha.Ledger(folder / "flower.db").account("wards", unit=mosha.Client(), epsilon=100, delta=1e-3)

    def run(_number: int) -> object:
        nodes = Nodes({node: app(towards([0.3, 0.4, 0.0])) for node in range(1, 6)})
        start = model(w=np.zeros(3, np.float32))
        return mosha.federated.flower(plan, account).start(grid=nodes, initial_arrays=start)

    return run


def _local(_folder: Path) -> Callable[[int], object]:
    """A report on a device, and the estimate of three hundred."""
    import mosha

    survey = mosha.local.Frequency(["firefox", "chrome", "safari"], epsilon=1.5)
    return lambda _number: survey.estimate([survey.report("firefox") for _ in range(300)]).shares


def _ledger(folder: Path) -> Callable[[int], object]:
    """A charge and a release: a noisy count, paid from SQLite."""
    import mosha
    from mosha.mechanisms import Count, laplace

    unit = mosha.Row()
    account = mosha.Ledger(folder / "ledger.db").account("rows", unit=unit, epsilon=10)
    count = laplace(Count(), unit=unit, epsilon=1)
    return lambda number: account.open(count, key=f"count {number}").step(["Ada", "Bo"])


ROADS: dict[str, Road] = {
    "query": _query,
    "stream step": _stream,
    "training step": _training,
    "Flower rounds": _flower,
    "local survey": _local,
    "charge and release": _ledger,
}


def walk(name: str) -> list[str]:
    """The files of the package on a road, each where it is first entered."""
    with tempfile.TemporaryDirectory() as folder:
        step = ROADS[name](Path(folder))
        for number in (1, 2):  # from the same depth: a question is looked at anew where fewer calls are left
            found = trace(partial(step, number))
        return found


def trace(call: Callable[[], object]) -> list[str]:
    """The files of the package that a call enters, in order."""
    found: dict[str, None] = {}
    inside = f"{PACKAGE}/"

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(inside):
            found.setdefault(frame.f_code.co_filename.removeprefix(inside))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)
