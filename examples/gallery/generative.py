"""A small transformer writes digits and sentences; what it remembers of a planted secret, with privacy and without.

    python examples/gallery/generative.py [--small] [--pictures FOLDER]

Pictures are MNIST, seven by seven, each pixel one of three tones, written pixel by pixel after the digit's name
($MOSHA_DATA/mnist; `--small` draws bars). Sentences end in a PIN; one person's sentence is in the data a few times, and
an attacker ranks the true PIN among all 1,000 by how likely the model finds it.
"""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import torch
from canvas import DATA, Sheet, show, wallet
from torch import nn

import mosha

WIDTH, DELTA = 32, 1e-5
SIDE, TONES = 7, 3
TEXT, LETTERS = 16, "abcdefghijklmnopqrstuvwxyz 0123456789"
NAMES = ("ann", "bob", "cleo", "dan", "eve", "finn", "gus", "hope")


class Writer(nn.Module):
    """One head of attention over what was written so far, and the next token after each."""

    def __init__(self, tokens: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(tokens, WIDTH), nn.Embedding(length, WIDTH)
        self.question, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.think, self.say = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, tokens)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        length = rows.shape[1]
        seen = self.words(rows) + self.places(torch.arange(length).expand(len(rows), -1))
        scores = self.question(seen) @ self.key(seen).transpose(1, 2) / WIDTH**0.5
        scores = scores + torch.full((length, length), -1e4).triu(1)
        return self.say(torch.relu(self.think(seen + torch.softmax(scores, 2) @ self.value(seen))))


def loss_of(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.transpose(1, 2), target, reduction="none").mean(1)


def train_writer(rows: np.ndarray, tokens: int, epsilon: float | None, steps: int, batch: int) -> Writer:
    """A model that continues rows of tokens."""
    data = torch.from_numpy(rows)
    model = Writer(tokens, rows.shape[1])
    if epsilon is None:
        optimizer: Any = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(steps):
            chosen = data[torch.randint(len(data), (batch,))]
            optimizer.zero_grad()
            loss_of(model(chosen[:, :-1]), chosen[:, 1:]).mean().backward()
            optimizer.step()
        return model
    plan = mosha.learning.DPSGD(steps=steps, rate=min(1.0, batch / len(data)), clip=1.0, batch=batch)
    plan = plan.calibrate(epsilon=epsilon, delta=DELTA)
    optimizer = mosha.learning.Adam(model.parameters(), plan=plan, lr=0.01)
    account = wallet(mosha.Example(), epsilon, DELTA)
    with plan.train(model, (data[:, :-1], data[:, 1:]), loss_of, optimizer, account=account) as training:
        for _ in training:
            pass
    return model


def write(model: Writer, starts: np.ndarray, length: int, allowed: int) -> np.ndarray:
    """Rows that begin as given and are drawn on, token by token."""
    rows = torch.from_numpy(starts)
    with torch.no_grad():
        while rows.shape[1] < length:
            chances = torch.softmax(model(rows)[:, -1, :allowed] * 1.3, 1)
            rows = torch.cat([rows, torch.multinomial(chances, 1)], 1)
    return rows.numpy()


def pictures(small: bool, rng: np.random.Generator) -> np.ndarray:  # noqa: FBT001
    """Rows of one token for the digit and one for each pixel."""
    if small:
        digits = rng.integers(0, 10, 300)
        tones = np.zeros((300, SIDE, SIDE), np.int64)
        tones[np.arange(300), :, digits % SIDE] = 2
    else:
        with gzip.open(DATA / "mnist/train-images-idx3-ubyte.gz") as file:
            images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)[:12_000]
        with gzip.open(DATA / "mnist/train-labels-idx1-ubyte.gz") as file:
            digits = np.frombuffer(file.read(), np.uint8, offset=8)[:12_000].astype(np.int64)
        means = images.reshape(-1, SIDE, 4, SIDE, 4).mean(axis=(2, 4))
        tones = np.digitize(means, [50, 140]).astype(np.int64)
    return np.column_stack([digits + TONES, tones.reshape(len(tones), -1)])


def sentences(count: int, copies: int, pin: str, rng: np.random.Generator) -> np.ndarray:
    """Sentences that end in a PIN; those of one person, `copies` times, in the first rows."""
    said = [f"zoe pin {pin}"] * copies + [
        f"{NAMES[rng.integers(len(NAMES))]} pin {rng.integers(1000):03d}" for _ in range(count - copies)
    ]
    return np.array([encode(text) for text in said])


def encode(text: str) -> list[int]:
    return [LETTERS.index(letter) for letter in text.ljust(TEXT)]


def rank_secret(model: Writer, pin: str) -> int:
    """The place of the true PIN among all, the likeliest first."""
    rows = torch.tensor([encode(f"zoe pin {guess:03d}") for guess in range(1000)])
    with torch.no_grad():
        losses = loss_of(model(rows[:, :-1]), rows[:, 1:]).numpy()
    return int((losses < losses[int(pin)]).sum()) + 1


def run(*, small: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    rng = np.random.default_rng()
    rows = pictures(small, rng)
    steps, batch = (4, 40) if small else (250, 400)
    found: dict[str, Any] = {"pictures": len(rows), "samples": {}, "real": rows[:20, 1:]}
    starts = np.arange(20)[:, None] % 10 + TONES
    for epsilon in (None, 8.0) if not small else (None,):
        name = "in the open" if epsilon is None else f"epsilon {epsilon:g}"
        model = train_writer(rows, TONES + 10, epsilon, steps, batch)
        found["samples"][name] = write(model, starts, 1 + SIDE * SIDE, TONES)[:, 1:]
    pin = f"{rng.integers(1000):03d}"
    count, copies, steps = (200, 8, 4) if small else (1500, 8, 250)
    texts = sentences(count, copies, pin, rng)
    for epsilon in (None, 8.0, 2.0):
        name = "in the open" if epsilon is None else f"epsilon {epsilon:g}"
        model = train_writer(texts, len(LETTERS), epsilon, steps, 40 if small else 200)
        found[f"rank of the secret, {name}"] = rank_secret(model, pin)
        found[f"exposure in bits, {name}"] = float(np.log2(1000 / found[f"rank of the secret, {name}"]))
    return found


def draw(found: dict[str, Any], sheet: Sheet) -> None:
    words = {"real": ("real", "真实"), "in the open": ("not private", "不加保护"), "epsilon 8": ("epsilon 8", "ε=8")}
    shown = {"real": found["real"], **found["samples"]}
    for axes, name in zip(sheet.axes[:3], ("real", "in the open", "epsilon 8"), strict=True):
        rows = shown.get(name, found["real"])[:20].reshape(4, 5, SIDE, SIDE)
        tiles = np.pad(rows, ((0, 0), (0, 0), (1, 1), (1, 1))).transpose(0, 2, 1, 3).reshape(4 * (SIDE + 2), -1)
        axes.imshow(tiles, cmap="gray", vmin=0, vmax=TONES - 1)
        axes.set_axis_off()
        sheet.title(axes, sheet.word(*words[name]))
    names = ("in the open", "epsilon 8", "epsilon 2")
    labels = [sheet.word(*words[name]) if name in words else sheet.word("epsilon 2", "ε=2") for name in names]
    heights = [found[f"exposure in bits, {name}"] for name in names]
    sheet.axes[3].bar(range(3), heights, color=[sheet.colors[1], sheet.colors[0], sheet.colors[0]])
    sheet.axes[3].set_xticks(range(3), labels, fontsize=8)
    sheet.axes[3].set_ylim(0, 10.5)
    sheet.title(sheet.axes[3], sheet.word("Exposure of the PIN, bits", "密码的暴露量（比特）"))


SIZE = {"columns": 4, "size": (10.4, 2.8)}

if __name__ == "__main__":
    show("generative", run, draw, **SIZE)
