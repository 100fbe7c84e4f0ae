"""One small model for each kind of layer, with batches for it."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def losses_of(model: Any, batch: Any) -> Any:
    out = model(*batch[:-1])
    return functional.cross_entropy(out, batch[-1], reduction="none")


def labels(rows: Any) -> Any:
    return torch.randint(0, 3, (rows,))


class Mean(nn.Module):
    """The mean over all axes but the first and the last."""

    def forward(self, x: Any) -> Any:
        return x.flatten(1, -2).mean(dim=1) if x.ndim > 2 else x


class Pooled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.flatten(2).mean(dim=2)


class First(nn.Module):
    """Only the outputs of a recurrent layer, with and without its last state."""

    def __init__(self, layer: Any, width: Any) -> None:
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        outputs, state = self.layer(x)
        last = state[0] if isinstance(state, tuple) else state
        mean = outputs.mean(dim=1 if self.layer.batch_first else 0)
        return self.out(mean) + last[-1][:, :3]


class Attending(nn.Module):
    def __init__(self, *, batch_first: Any, need_weights: Any, cross: Any) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.first, self.out = nn.Linear(5, 8), nn.Linear(8, 3)
        self.need_weights, self.cross = need_weights, cross

    def forward(self, x: Any) -> Any:
        h = torch.tanh(self.first(x))
        h = h if self.attention.batch_first else h.transpose(0, 1)
        other = h.flip(1 if self.attention.batch_first else 0) if self.cross else h
        mask = torch.zeros(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -math.inf)
        mixed, _ = self.attention(h, other, other, need_weights=self.need_weights, attn_mask=mask)
        return self.out(mixed.mean(dim=1 if self.attention.batch_first else 0))


class Own(nn.Module):
    """A module of one's own, with bare parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.rand(7)), nn.Parameter(torch.zeros(()))
        self.inner = nn.Linear(7, 3)

    def forward(self, x: Any, *, power: Any = 2) -> Any:
        return self.inner((x * self.scale + self.shift) ** power)


class Twice(nn.Module):
    """One layer used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.again, self.out = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.out(torch.tanh(self.again(torch.tanh(self.again(x)))))


class Tied(nn.Module):
    """Tokens in and out by one table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 6)
        self.out = nn.Linear(6, 9, bias=False)
        self.out.weight = self.table.weight

    def forward(self, tokens: Any) -> Any:
        return self.out(torch.tanh(self.table(tokens))).mean(dim=1)


class SharedTable(nn.Module):
    """A wide table that reads a text twice and, tied, speaks as well: too large to be formed for every example."""

    def __init__(self, *, tied: Any) -> None:
        super().__init__()
        self.table, self.tied = nn.Embedding(40, 6), tied
        self.out = nn.Linear(6, 40 if tied else 3, bias=False)
        if tied:
            self.out.weight = self.table.weight

    def forward(self, tokens: Any) -> Any:
        h = torch.tanh(self.table(tokens)) * self.table(tokens.flip(1))
        return self.out(h).mean(dim=1)


class SharedLayer(nn.Module):
    """One layer used twice, at every position."""

    def __init__(self) -> None:
        super().__init__()
        self.again, self.out = nn.Linear(12, 12), nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        return self.out(torch.tanh(self.again(torch.tanh(self.again(x))))).mean(dim=1)


class Bag(nn.Module):
    """Tokens of an example made one: with or without padding, with or without weights."""

    def __init__(self, mode: Any, *, padded: Any = None, scaled: bool = False) -> None:
        super().__init__()
        self.bag, self.out = nn.EmbeddingBag(9, 6, mode=mode, padding_idx=padded), nn.Linear(6, 3)
        self.scaled = scaled

    def forward(self, tokens: Any) -> Any:
        weights = torch.linspace(0.5, 1, tokens.shape[1]).expand(tokens.shape) if self.scaled else None
        return self.out(self.bag(tokens, per_sample_weights=weights))


class LoRA(nn.Module):
    """A frozen layer with an adapter of low rank."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.down, self.up = nn.Linear(8, 2, bias=False), nn.Linear(2, 8, bias=False)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.out(torch.relu(self.frozen(x) + self.up(self.down(x)))).mean(dim=1)


def numbers(*shape: Any) -> Any:
    return lambda rows: (torch.randn(rows, *shape), labels(rows))


def tokens(*shape: Any, below: Any = 9) -> Any:
    return lambda rows: (torch.randint(0, below, (rows, *shape)), labels(rows))


def convolution(kind: Any, channels: Any = 2, **options: Any) -> Any:
    return lambda: nn.Sequential(kind(channels, 4, **options), nn.ReLU(), kind(4, 3, kernel_size=1), Pooled())


def wide(kind: Any, **options: Any) -> Any:
    """A convolution with many channels and few positions: its gradients take more room than what it saw."""
    return lambda: nn.Sequential(kind(24, 24, **options), nn.Tanh(), kind(24, 3, kernel_size=1), Pooled())


class Turned(nn.Module):
    """Time first inside, batch first outside."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x.transpose(0, 1))


def recurrent(kind: Any, **options: Any) -> Any:
    width = options.get("hidden_size", 5) * (2 if options.get("bidirectional") else 1)
    return lambda: First(kind(4, **({"hidden_size": 5} | options)), width)


class Doubled(nn.Module):
    def forward(self, weight: Any) -> Any:
        return 2 * weight.tanh()


def parametrised() -> Any:
    layer = nn.Linear(6, 5)
    nn.utils.parametrize.register_parametrization(layer, "weight", Doubled())
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(5, 3))


def half_frozen() -> Any:
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    model[0].weight.requires_grad_(False)
    return model


MODELS = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3, bias=False)), numbers(6)),
    "linear over positions": (
        lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3), Mean()),
        numbers(4, 6),
    ),
    "linear over a picture": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 3), Mean()), numbers(2, 3, 6)),
    "half frozen": (half_frozen, numbers(6)),
    "conv1d": (convolution(nn.Conv1d, kernel_size=3, padding=1, stride=2), numbers(2, 9)),
    "conv2d": (convolution(nn.Conv2d, kernel_size=3, padding=(1, 0), stride=(2, 1)), numbers(2, 7, 6)),
    "conv2d, pooled": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(4, 3, 2), nn.MaxPool2d(2, (1, 2), 1), Pooled()
        ),
        numbers(2, 6, 7),
    ),
    "conv2d groups": (convolution(nn.Conv2d, kernel_size=3, groups=2, dilation=2), numbers(2, 8, 9)),
    "conv2d same": (convolution(nn.Conv2d, kernel_size=3, dilation=2, padding="same"), numbers(2, 6, 6)),
    "conv2d circular": (convolution(nn.Conv2d, kernel_size=3, padding=1, padding_mode="circular"), numbers(2, 6, 6)),
    "conv2d strided point": (convolution(nn.Conv2d, kernel_size=1, stride=2), numbers(2, 6, 6)),
    "conv1d wide": (wide(nn.Conv1d, kernel_size=3, padding=2, stride=2, dilation=2), numbers(24, 7)),
    "conv2d wide": (wide(nn.Conv2d, kernel_size=3, padding=(1, 0), stride=(2, 1)), numbers(24, 5, 5)),
    "conv2d wide, many positions": (wide(nn.Conv2d, kernel_size=3, dilation=2, padding=2), numbers(24, 8, 8)),
    "conv2d wide groups": (wide(nn.Conv2d, kernel_size=3, groups=2, padding=1), numbers(24, 3, 4)),
    "conv3d wide": (wide(nn.Conv3d, kernel_size=2, padding=1, stride=2), numbers(24, 4, 4, 3)),
    "conv3d": (convolution(nn.Conv3d, kernel_size=2), numbers(2, 4, 4, 3)),
    "embedding": (lambda: nn.Sequential(nn.Embedding(9, 6, padding_idx=0), nn.Linear(6, 3), Mean()), tokens(5)),
    "embedding, long": (lambda: nn.Sequential(nn.Embedding(9, 3), Mean()), tokens(600)),
    "embedding, one token": (lambda: nn.Sequential(nn.Embedding(9, 3)), tokens()),
    "bag of tokens": (lambda: Bag("mean"), tokens(5)),
    "bag of tokens, padded": (lambda: Bag("mean", padded=0), tokens(5)),
    "bag of tokens, summed": (lambda: Bag("sum", padded=0, scaled=True), tokens(5)),
    "bag of tokens, largest": (lambda: Bag("max", padded=0), tokens(5)),
    "layer norm": (lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 3), Mean()), numbers(4, 6)),
    "layer norm, flat": (lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 3)), numbers(6)),
    "layer norm, two axes": (lambda: nn.Sequential(nn.LayerNorm((4, 6)), nn.Linear(6, 3), Mean()), numbers(4, 6)),
    "rms norm": (lambda: nn.Sequential(nn.Linear(6, 5), nn.RMSNorm(5), nn.Linear(5, 3), Mean()), numbers(4, 6)),
    "group norm": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 3, 1), Pooled()),
        numbers(2, 6, 6),
    ),
    "instance norm": (
        lambda: nn.Sequential(nn.InstanceNorm2d(2, affine=True), nn.ReLU(), nn.Conv2d(2, 3, 1), Pooled()),
        numbers(2, 6, 6),
    ),
    "group norm of one channel": (
        lambda: nn.Sequential(nn.Conv2d(2, 1, 3), nn.GroupNorm(1, 1), nn.Conv2d(1, 3, 1), Pooled()),
        numbers(2, 6, 6),
    ),
    "group norm, nothing before it": (
        lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(12, 3)),
        numbers(4, 3),
    ),
    "convolutions of many channels": (
        lambda: nn.Sequential(
            nn.Conv2d(16, 24, 3, padding=1, stride=2), nn.Tanh(), nn.Conv2d(24, 16, 3, padding=2, dilation=2), Pooled()
        ),
        numbers(16, 5, 4),
    ),
    "convolution of steps": (lambda: nn.Sequential(nn.Conv2d(3, 5, 1, stride=(2, 3)), Pooled()), numbers(3, 6, 7)),
    "lstm": (recurrent(nn.LSTM, batch_first=True), numbers(7, 4)),
    "lstm, deep, both ways": (recurrent(nn.LSTM, batch_first=True, num_layers=2, bidirectional=True), numbers(7, 4)),
    "lstm without bias": (recurrent(nn.LSTM, batch_first=True, bias=False), numbers(7, 4)),
    "gru": (recurrent(nn.GRU, batch_first=True), numbers(7, 4)),
    "gru, deep, both ways": (recurrent(nn.GRU, batch_first=True, num_layers=2, bidirectional=True), numbers(7, 4)),
    "attention": (lambda: Attending(batch_first=True, need_weights=False, cross=False), numbers(4, 5)),
    "attention, time first": (lambda: Attending(batch_first=False, need_weights=False, cross=False), numbers(4, 5)),
    "lstm, time first": (lambda: Turned(recurrent(nn.LSTM)()), numbers(7, 4)),
    "attention, weights": (lambda: Attending(batch_first=True, need_weights=True, cross=False), numbers(4, 5)),
    "attention, crossed": (lambda: Attending(batch_first=True, need_weights=False, cross=True), numbers(4, 5)),
    "transformer": (
        lambda: nn.Sequential(
            nn.Embedding(9, 8),
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
            Mean(),
            nn.Linear(8, 3),
        ),
        tokens(5),
    ),
    "a module of one's own": (lambda: nn.Sequential(nn.Linear(5, 7), Own()), numbers(5)),
    "parametrised weights": (parametrised, numbers(6)),
    "a layer used twice": (Twice, numbers(6)),
    "tied weights": (Tied, tokens(4)),
    "tied weights, wide": (lambda: SharedTable(tied=True), tokens(3)),
    "a table used twice": (lambda: SharedTable(tied=False), tokens(3)),
    "a layer used twice, at positions": (SharedLayer, numbers(4, 12)),
    "low rank adapter": (LoRA, numbers(4, 8)),
}
