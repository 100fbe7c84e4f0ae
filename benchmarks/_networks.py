"""The networks of the learning benchmark, for whoever has PyTorch: read as text into the peer's environment."""

import resource
import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A residual block with group norms."""

    def __init__(self, inputs: Any, outputs: Any, stride: Any) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.GroupNorm(8, outputs), nn.GroupNorm(8, outputs)])
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Any) -> Any:
        h = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(h)) + self.shortcut(x))


class Pool(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean(dim=(2, 3))


class Mean(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean(dim=1)


class Last(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0][:, -1]


def mlp() -> tuple[Any, ...]:
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)]
    return nn.Sequential(*layers), torch.randn(256, 784)


def cnn() -> tuple[Any, ...]:
    layers = [nn.Conv2d(1, 16, 8, 2, 2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.Tanh()]
    layers += [nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10)]
    return nn.Sequential(*layers), torch.randn(256, 1, 28, 28)


def residual(*widths: Any) -> Any:
    """A residual network with a block for each width; where widths grow, pictures become smaller."""
    before = widths[0]
    layers = [nn.Conv2d(3, before, 3, 1, 1, bias=False), nn.GroupNorm(8, before), nn.ReLU()]
    for width in widths:
        layers.append(Block(before, width, 1 if width == before else 2))
        before = width
    return nn.Sequential(*layers, Pool(), nn.Linear(before, 10))


def resnet() -> tuple[Any, ...]:
    return residual(16, 16, 16, 32, 32, 32, 64, 64, 64), torch.randn(64, 3, 32, 32)


def resnet18() -> tuple[Any, ...]:
    return residual(64, 64, 128, 128, 256, 256, 512, 512), torch.randn(16, 3, 32, 32)


def transformer() -> tuple[Any, ...]:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    tokens = torch.randint(0, 10_000, (32, 128))
    return nn.Sequential(nn.Embedding(10_000, 256), body, Mean(), nn.Linear(256, 10)), tokens


def lstm() -> tuple[Any, ...]:
    layers = [nn.Embedding(10_000, 100), Last(nn.LSTM(100, 128, batch_first=True)), nn.Linear(128, 10)]
    return nn.Sequential(*layers), torch.randint(0, 10_000, (64, 64))


class Both(nn.Module):
    """The last states of both directions of a recurrent layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Any) -> Any:
        return torch.cat(tuple(self.layer(x)[1][0]), dim=1)


class Patches(nn.Module):
    """Pictures as a sequence of patches, with a class token and positions, as vision transformers have them."""

    def __init__(self, width: Any, patch: Any, count: Any) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch, patch)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, count + 1, width))

    def forward(self, x: Any) -> Any:
        x = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places


class First(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[:, 0]


def both_directions() -> tuple[Any, ...]:
    layers = [nn.Embedding(5_000, 64), Both(nn.LSTM(64, 64, batch_first=True, bidirectional=True)), nn.Linear(128, 10)]
    return nn.Sequential(*layers), torch.randint(0, 5_000, (64, 40))


def tabular() -> tuple[Any, ...]:
    layers = [nn.Linear(100, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(512, 10)), torch.randn(512, 100)


def vision_transformer() -> tuple[Any, ...]:
    layer = nn.TransformerEncoderLayer(192, 3, 768, dropout=0.0, batch_first=True, norm_first=True)
    body = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    return nn.Sequential(Patches(192, 4, 64), body, First(), nn.Linear(192, 10)), torch.randn(32, 3, 32, 32)


class Rotating(nn.Module):
    """Causal attention with rotary positions and fewer heads of keys than of queries, as Llama has it."""

    def __init__(self, width: Any, heads: Any, shared: Any, length: Any) -> None:
        super().__init__()
        self.heads, self.shared, each = heads, shared, width // heads
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, shared * each, bias=False) for _ in range(2))
        angles = torch.outer(torch.arange(length), 10_000 ** -(torch.arange(0, each, 2) / each)).repeat(1, 2)
        self.cosines: Any
        self.sines: Any
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def turn(self, x: Any) -> Any:
        first, second = x.chunk(2, dim=-1)
        return x * self.cosines + torch.cat([-second, first], dim=-1) * self.sines

    def forward(self, x: Any) -> Any:
        rows, length, width = x.shape
        q = self.query(x).view(rows, length, self.heads, -1).transpose(1, 2)
        k, v = (layer(x).view(rows, length, self.shared, -1).transpose(1, 2) for layer in (self.key, self.value))
        k, v = (part.repeat_interleave(self.heads // self.shared, dim=1) for part in (self.turn(k), v))
        mixed = functional.scaled_dot_product_attention(self.turn(q), k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))


class LlamaLayer(nn.Module):
    def __init__(self, width: Any, inner: Any, length: Any) -> None:
        super().__init__()
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = Rotating(width, 8, 2, length)
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.before(x))
        h = self.between(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


def llama() -> tuple[Any, ...]:
    layers = [LlamaLayer(256, 688, 64) for _ in range(4)]
    model = nn.Sequential(nn.Embedding(5_000, 256), *layers, nn.RMSNorm(256), Mean(), nn.Linear(256, 10, bias=False))
    return model, torch.randint(0, 5_000, (16, 64))


NETWORKS = {
    "Llama": llama,
    "BiLSTM": both_directions,
    "tabular": tabular,
    "ViT-tiny": vision_transformer,
    "MLP": mlp,
    "CNN": cnn,
    "ResNet": resnet,
    "ResNet-18": resnet18,
    "transformer": transformer,
    "LSTM": lstm,
}


def plain_step(model: Any, inputs: Any, targets: Any, optimizer: Any) -> Any:
    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    return step


def peak() -> Any:
    """The largest memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds(step: Any, count: Any) -> Any:
    """The least CPU seconds of a step."""
    best = float("inf")
    for _ in range(count):
        start = time.process_time()
        step()
        best = min(best, time.process_time() - start)
    return best


def with_opacus(mode: str, criterion: Any, **options: Any) -> tuple:
    """Model, optimiser, loss and loader of Opacus in one of its modes."""
    from opacus import PrivacyEngine

    if mode == "ghost":
        return PrivacyEngine().make_private(criterion=criterion, grad_sample_mode=mode, **options)
    if mode == "ew":
        options["loss_reduction"] = "mean"
    model, optimizer, loader = PrivacyEngine().make_private(grad_sample_mode=mode, **options)
    return model, optimizer, criterion, loader
