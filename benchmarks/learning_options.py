"""What large batches, averages of parameters and several views of an example gain: digits of 8 x 8 pixels, epsilon 3.

After De et al. (2022), who report gains from all three on CIFAR-10. Here: the digits of scikit-learn (1,797 pictures,
every third held out), a small convolutional network, delta 1e-4, the same number of passes over the data in each row,
four trainings each; views are shifted by up to one pixel.
"""

from __future__ import annotations

import math
from typing import Any

from benchmarks._rows import Row

EPSILON = 3.0
DELTA = 1e-4
EPOCHS = 30.0
RUNS = 4


def _digits() -> tuple[Any, ...]:
    import torch
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    inputs = torch.from_numpy(pictures).float().view(-1, 1, 8, 8) / 16
    held = torch.arange(len(inputs)) % 3 == 0
    targets = torch.from_numpy(labels)
    return (inputs[~held], targets[~held]), (inputs[held], targets[held])


def _shift(pictures: Any) -> Any:
    """Every picture by up to one pixel, by coins of its own."""
    import torch

    wide = torch.nn.functional.pad(pictures, (1, 1, 1, 1))
    rows = torch.arange(8)[None] + torch.randint(0, 3, (len(pictures), 1))
    columns = torch.arange(8)[None] + torch.randint(0, 3, (len(pictures), 1))
    here = torch.arange(len(pictures))[:, None, None]
    return wide[here, 0, rows[:, :, None], columns[:, None, :]][:, None]


def _train(seed: int, *, rate: float, speed: float, views: int = 1, average: float | None = None) -> float:
    import torch

    import mosha

    torch.manual_seed(seed)
    (inputs, targets), (others, wanted) = _digits()
    nn = torch.nn
    layers = [nn.Conv2d(1, 16, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.Tanh(), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(128, 10))
    terms: dict[str, Any] = {"epochs": EPOCHS, "rate": rate, "clip": 1.0, "batch": rate * len(inputs)}
    plan = mosha.learning.DPSGD(**terms, views=views, average=average).calibrate(epsilon=EPSILON, delta=DELTA)
    account = mosha.Ledger.memory().account("digits", unit=mosha.Example(), epsilon=EPSILON, delta=DELTA)
    optimizer = torch.optim.SGD(model.parameters(), lr=speed, momentum=0.9)
    loss, augment = nn.CrossEntropyLoss(reduction="none"), _shift if views > 1 else None
    with plan.train(model, (inputs, targets), loss, optimizer, account=account, augment=augment) as training:
        for _ in training:
            pass
        final = training.averaged_model() if average else model
    final.eval()
    return float((final(others).argmax(1) == wanted).float().mean())


WAYS = {
    "batches of 24": {"rate": 0.02, "speed": 0.05},
    "batches of 240": {"rate": 0.2, "speed": 0.3},
    "batches of 240, averaged": {"rate": 0.2, "speed": 0.3, "average": 0.95},
    "batches of 240, four views": {"rate": 0.2, "speed": 0.3, "views": 4},
    "batches of 240, four views, averaged": {"rate": 0.2, "speed": 0.3, "views": 4, "average": 0.95},
}


def gains() -> list[Row]:
    import torch

    torch.set_num_threads(1)
    rows, first = [], None
    for name, options in WAYS.items():
        found = [_train(seed, **options) for seed in range(RUNS)]  # type: ignore[arg-type]
        mean = sum(found) / RUNS
        spread = math.sqrt(sum((one - mean) ** 2 for one in found) / (RUNS - 1) / RUNS)
        first = mean if first is None else first
        shown = f"{100 * mean:.1f} % (standard error {100 * spread:.1f})"
        rows.append(
            Row(f"accuracy, {name}", "batches of 24", (1 - first) / (1 - mean), None, shown, f"{100 * first:.1f} %")
        )
    return rows


PIECES = {"gains": gains}
