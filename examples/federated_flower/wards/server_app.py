"""The server: an ordinary Flower app whose strategy is Mosha's."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from flwr.app import Array, ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp

import mosha
from wards import task
from wards.plan import plan_for, question_for

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    config = context.run_config
    if config["where"] == "question":
        ask(grid, config)
        return
    plan = plan_for(config["where"], config["rounds"], config["wards"])
    ledger = mosha.Ledger(config["ledger"])  # type: ignore[arg-type]
    account = ledger.account("wards", unit=plan.unit, epsilon=1000, delta=1e-3)
    told: dict[str, Any] = {"rounds": [], "run": context.run_id}

    def note(done: mosha.federated.Round) -> None:
        told["rounds"].append({"round": done.number, "epsilon": done.epsilon, **(done.metrics or {})})
        told["spent"] = account.spent
        pathlib.Path(config["report"]).write_text(json.dumps(told))  # type: ignore[arg-type]
        print(f"round {done.number}: epsilon {done.epsilon:.3f}, {done.metrics}", flush=True)

    test = task.data(ward=0, rows=2000)  # public: made for the purpose

    def evaluate(number: int, arrays: ArrayRecord) -> MetricRecord:
        del number
        model = {name: array.numpy() for name, array in arrays.items()}
        if config["where"] == "hospitals":
            model = {"weights": model["weight"].T, "bias": model["bias"]}
        return MetricRecord({"accuracy": task.accuracy(model, *test)})

    strategy = mosha.federated.flower(
        plan,
        None if config["where"] == "client" else account,
        key="wards-1",
        checkpoint=config["checkpoint"],  # type: ignore[arg-type]
        wait_for=config["wards"],  # type: ignore[arg-type]
        patience=60,
        on_round=note,
        secret=config["secret"] if config["where"] == "turns" else None,  # type: ignore[arg-type]
    )
    blank = task.blank()
    if config["where"] == "hospitals":  # by the names of the layer that hospitals have
        blank = {"weight": blank["weights"].T.copy(), "bias": blank["bias"]}
    initial = ArrayRecord({name: Array(array) for name, array in blank.items()})
    strategy.start(grid=grid, initial_arrays=initial, timeout=120, evaluate_fn=evaluate)
    told["done"] = True
    pathlib.Path(config["report"]).write_text(json.dumps(told))  # type: ignore[arg-type]


def ask(grid: Grid, config: Any) -> None:
    """A question without training."""
    ledger = mosha.Ledger(config["ledger"])
    account = ledger.account("questions", unit=mosha.Client(), epsilon=40, delta=1e-4)
    question = question_for(config["wards"])
    release = mosha.federated.flower_ask(question, account, grid, key="wards-question", patience=60, timeout=120)
    told = {"done": True, "rounds": [release.value.round(1).tolist()], "spent": account.spent}
    pathlib.Path(config["report"]).write_text(json.dumps(told))
