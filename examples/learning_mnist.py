"""MNIST with differential privacy: a small convolutional network, trained on the CPU in minutes.

    python examples/learning_mnist.py --epsilon 2.93      # delta 1e-5: 98.25, 98.19, 98.13, 98.11 % (four runs)
    python examples/learning_mnist.py --epsilon 1         # 97.63, 97.46 % (two runs)

The data (four files of the IDX format) are looked for in $MOSHA_DATA/mnist, or in the folder that is given:
Fashion-MNIST has the same files (Debian's package dataset-fashion-mnist).

Nothing is tuned on MNIST here: network, batch 2048, clip 0.1, learning rate 4 and momentum 0.9 are published. New is
how the first layer starts: edges and lines in eight directions, not random filters. What every picture has need not be
learnt from private ones. It was chosen on Fashion-MNIST, where it gained nearly two points at epsilon 2.93 (86.5 % and
86.8 % after 84.8 %, with batches of 240 and noise in proportion); other rates, GroupNorm and ReLU did no better there.
On MNIST it gained little: random filters reached 97.92 %, 97.94 % and 97.99 %, and 30 epochs 97.94 % and 97.88 %.
Tested is a moving average of the parameters, and what it says on average about a picture in nine places, a pixel apart:
noise averages out, and whatever is made of released parameters costs nothing. From one view the same four models reach
98.04 %, 98.05 %, 97.88 % and 97.85 %, three others 98.23 %, 97.90 % and 97.92 %.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import mosha

PUBLIC_SIZE = 60_000  # everybody knows how large MNIST is: declared, not counted
MEAN, DEVIATION = 0.1307, 0.3081  # published
BLACK = -MEAN / DEVIATION
BATCH = 2048
EPOCHS = {2.93: 20, 1.0: 15}


def read(folder: Path, name: str) -> torch.Tensor:
    with gzip.open(folder / name) as file:
        content = file.read()
    axes = content[3]
    shape = [int.from_bytes(content[4 + 4 * i : 8 + 4 * i], "big") for i in range(axes)]
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape).copy())


def digits(folder: Path, which: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures, brought near mean 0 and deviation 1 by public constants, and labels."""
    pictures = read(folder, f"{which}-images-idx3-ubyte.gz").float().unsqueeze(1) / 255
    return (pictures - MEAN) / DEVIATION, read(folder, f"{which}-labels-idx1-ubyte.gz").long()


def edges(count: int, side: int) -> torch.Tensor:
    """Filters of norm one that see edges (odd) and lines (even) in count/2 directions: a wave under a Gaussian."""
    place = torch.arange(side) - (side - 1) / 2
    y, x = torch.meshgrid(place, place, indexing="ij")
    found = []
    for phase in (0.0, math.pi / 2):
        for angle in torch.arange(count // 2) * (2 * math.pi / count):
            along, across = x * angle.cos() + y * angle.sin(), y * angle.cos() - x * angle.sin()
            window = torch.exp(-(along**2 + across**2 / 2) / side)
            wave = window * torch.cos(2 * math.pi * along / (0.75 * side) + phase)
            wave -= window * (wave.sum() / window.sum())  # blind to brightness
            found.append(wave / wave.norm())
    return torch.stack(found).unsqueeze(1)


def network() -> nn.Module:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )
    with torch.no_grad():
        model[0].weight.copy_(edges(16, 8))  # type: ignore[operator]
        model[0].bias.zero_()  # type: ignore[operator]
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # the layout in which small convolutions are quick on a CPU


def moved(pictures: torch.Tensor) -> list[torch.Tensor]:
    """The pictures where they are, and moved by a pixel to all eight sides."""
    side = pictures.shape[-1]
    framed = nn.functional.pad(pictures, (1, 1, 1, 1), value=BLACK)
    return [framed[..., y : y + side, x : x + side] for y in (1, 0, 2) for x in (1, 0, 2)]


def accuracy(model: nn.Module, pictures: torch.Tensor, labels: torch.Tensor, views: int = 9) -> float:
    """The share of right answers, where an answer is the mean of what the model says about the first views."""
    right = 0
    with torch.no_grad():
        for part, of in zip(pictures.split(1000), labels.split(1000), strict=True):
            said = sum(model(view).softmax(1) for view in moved(part)[:views])
            right += int((said.argmax(1) == of).sum())
    return right / len(labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=2.93)
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--folder", type=Path, default=None, help="where the four files are")
    parser.add_argument("--steps", type=int, default=None, help="stop early, for a quick look")
    options = parser.parse_args()
    torch.set_num_threads(1)
    home = Path(os.environ.get("MOSHA_DATA", Path(__file__).parents[2] / "shared" / "data"))
    folder = options.folder or home / "mnist"
    epochs = options.epochs or EPOCHS.get(options.epsilon, 15)

    plan = mosha.learning.DPSGD(
        steps=options.steps or round(epochs * PUBLIC_SIZE / BATCH),
        rate=BATCH / PUBLIC_SIZE,
        clip=0.1,
        batch=BATCH,
        physical=512,
    ).calibrate(epsilon=options.epsilon, delta=1e-5)
    print(f"{plan.steps} steps with noise multiplier {plan.noise_multiplier:.3f}")

    model = network()
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    optimizer = torch.optim.SGD(model.parameters(), lr=4.0, momentum=0.9)
    loss = nn.CrossEntropyLoss(reduction="none")
    with tempfile.TemporaryDirectory() as place:
        ledger = mosha.Ledger(str(Path(place) / "privacy.db"))
        account = ledger.account("mnist", unit=mosha.Example(), epsilon=options.epsilon, delta=1e-5)
        began = time.process_time()
        with plan.train(model, digits(folder, "train"), loss, optimizer, account=account) as training:
            for step in training:
                averaged.update_parameters(model)
                if step.number % 50 == 0:
                    print(step)
        print(f"{time.process_time() - began:.0f} CPU seconds; {training.receipt}")
    tests = digits(folder, "t10k")
    once, last = accuracy(averaged, *tests, views=1), accuracy(model, *tests, views=1)
    print(f"test accuracy {accuracy(averaged, *tests):.2%} (from one view: {once:.2%}, of the last step: {last:.2%})")


if __name__ == "__main__":
    main()
