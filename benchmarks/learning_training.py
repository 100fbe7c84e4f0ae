"""Trainings as people run them, beside plain PyTorch and Opacus 1.6.0: time and memory, one thread.

Ours is `plan.train` with Poisson batches, filling, gathering and a ledger; Opacus has its own Poisson loader, and a
plain step gathers a Poisson batch of the same rate. Steps take turns within a process, and means are compared. The
plan is one of a thousand steps, of which some are taken: how many there are decides what is prepared. Memory is the
peak beyond the loaded libraries: compiled noise, which brings numba along (some 60 MB), is loaded before.

Where a bar is out of reach, a floor stands beside it: the least that we know how to write by hand for that one network,
in the same process. It clips by exact norms and adds normal noise of PyTorch to plain layers, and has nothing else: no
filling, no order of rows that nobody knows, no sums without rounding, no noise that is exact, no ledger.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row

SOURCE = (Path(__file__).parent / "_networks.py").read_text()
BARS = {("MLP", 256): 1.5, ("CNN", 256): 1.15, ("CNN", 32): 1.3, ("ResNet-18", 32): 1.35, ("BiLSTM", 64): 1.6}
BARS |= {("tabular", 512): 1.4, ("ViT-tiny", 32): 1.6, ("Llama", 16): 1.5}
STEPS = {"MLP": 40, "CNN": 30, "ResNet-18": 4, "BiLSTM": 12, "tabular": 40, "ViT-tiny": 6, "Llama": 8}
MODES = ("hooks", "ghost")
FLOORS = {"CNN", "BiLSTM"}

SHARED = """
import json, sys
torch.set_num_threads(1)
name, batch, count, mode = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
torch.manual_seed(0)
model, like = NETWORKS[name]()
people = 20 * batch
inputs = like[torch.arange(people) % len(like)].clone()
targets = torch.randint(0, 10, (people,))
plain_model = NETWORKS[name]()[0]
plain_optimizer = torch.optim.SGD(plain_model.parameters(), lr=1e-3)

def plain():
    places = torch.where(torch.rand(people) < 1 / 20)[0]
    plain_optimizer.zero_grad()
    functional.cross_entropy(plain_model(inputs[places]), targets[places]).backward()
    plain_optimizer.step()

def measure(step):
    spent = [0.0, 0.0]
    step(), plain()
    for _ in range(count):
        for number, one in enumerate((plain, step)):
            start = time.process_time()
            one()
            spent[number] += time.process_time() - start
    return spent[1] / spent[0]
"""
OURS = """
if mode == "plain":
    before = peak()
    for _ in range(3): plain()
    print(json.dumps(peak() - before))
else:
    import mosha
    options = dict(rate=1 / 20, batch=batch, clip=1.0, noise_multiplier=1.0, delta=1e-5)
    plan = mosha.learning.DPSGD(steps=1000, **options)
    account = mosha.Ledger.memory().account("b", unit=mosha.Example(), epsilon=1e6, delta=1e-5, rule="pure")
    optimizer, loss = torch.optim.SGD(model.parameters(), lr=1e-3), nn.CrossEntropyLoss(reduction="none")
    if mode == "memory":
        import mosha.noise.compiled
        import numpy
        whole = numpy.zeros(1 << 20, numpy.float32)
        mosha.noise.scaled_discrete_gaussian(whole, 2**21, 1.0)
        del whole
    before = peak()
    training = plan.train(model, (inputs, targets), loss, optimizer, account=account)
    if mode == "memory":
        for _ in range(3): training.step()
        print(json.dumps(peak() - before))
    else:
        print(json.dumps([measure(training.step), training.plan.at_once]))
"""
FLOOR = """
def released(parameters, sums):
    for parameter, total in zip(parameters, sums):
        parameter.grad = (total.view_as(parameter) + torch.randn(parameter.shape)) / batch
    optimizer.step()

def formed(layer, a, g):  # the gradients of a convolution, all of them at once
    rows = len(a)
    how = layer.stride, layer.padding, layer.dilation, False, [0, 0], rows
    shaped = torch.empty(rows * len(layer.weight), *layer.weight.shape[1:])
    a, g = a.reshape(1, -1, *a.shape[2:]), g.reshape(1, -1, *g.shape[2:])
    return torch.ops.aten.convolution_backward(g, a, shaped, [0], *how, [False, True, False])[1].view(rows, -1)

def by_formed_gradients():
    places = torch.where(torch.rand(people) < 1 / 20)[0]
    h, layers, seen = inputs[places], [], []
    for layer in model:
        before, h = h, layer(h)
        if hasattr(layer, "weight"):
            h = h if layers else h.requires_grad_()
            layers.append((layer, before.detach())), seen.append(h)
    upstream = torch.autograd.grad(functional.cross_entropy(h, targets[places], reduction="sum"), seen)
    parts, squares = [], 0
    for (layer, a), g in zip(layers, upstream):
        if isinstance(layer, nn.Conv2d):
            weight, bias = formed(layer, a, g), g.sum(dim=(2, 3))
            squares = squares + torch.linalg.vector_norm(weight, dim=1).square() + bias.square().sum(dim=1)
            parts += [lambda w, v=weight: w @ v, lambda w, v=bias: w @ v]
        else:
            squares = squares + g.square().sum(dim=1) * (1 + a.square().sum(dim=1))
            parts += [lambda w, a=a, g=g: (g * w.unsqueeze(1)).t() @ a, lambda w, g=g: w @ g]
    weights = squares.sqrt().clamp_min(1).reciprocal()
    released(model.parameters(), [part(weights) for part in parts])

def by_products_alone():  # gradients of gates, which PyTorch's LSTM does not give, are had for nothing
    places = torch.where(torch.rand(people) < 1 / 20)[0]
    rows, layer = len(places), model[1].layer
    optimizer.zero_grad()
    functional.cross_entropy(model(inputs[places]), targets[places]).backward()
    squares, sums = 1.0, []
    for gates, a in upstream:
        of_gates = torch.bmm(gates[:rows], gates[:rows].transpose(1, 2))
        for v in a:
            squares = squares + (of_gates * torch.bmm(v[:rows], v[:rows].transpose(1, 2))).sum(dim=(1, 2)).abs()
    weights = squares.sqrt().reciprocal().view(-1, 1, 1)
    for gates, a in upstream:
        for v in a:
            sums.append(gates[:rows].flatten(0, 1).t() @ (v[:rows] * weights).flatten(0, 1))
    released(model.parameters(), [p.grad for p in model.parameters()])

optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
if name == "BiLSTM":
    made = lambda width: torch.randn(2 * batch, inputs.shape[1], width)
    upstream = [(made(256), (made(64), made(64))) for _ in range(2)]
    print(json.dumps(measure(by_products_alone)))
else:
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    print(json.dumps(measure(by_formed_gradients)))
"""
OPACUS = """
import warnings
warnings.simplefilter("ignore")
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, TensorDataset
model = ModuleValidator.fix(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=batch)
options = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
model, optimizer, criterion, loader = with_opacus(mode, nn.CrossEntropyLoss(), poisson_sampling=True, **options)
def batches():
    while True:
        yield from loader
drawn = batches()
def step():
    some, wanted = next(drawn)
    optimizer.zero_grad()
    criterion(model(some), wanted).backward()
    optimizer.step()
print(json.dumps(measure(step)))
"""


def ours(name: str, batch: int, mode: str) -> Any:
    script = FLOOR if mode == "floor" else OURS
    command = [sys.executable, "-c", SOURCE + SHARED + script, name, str(batch), str(STEPS[name]), mode]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def network(name: str, batch: int) -> list[Row]:
    ratio, at_once = ours(name, batch, "time")
    plain_memory, memory = ours(name, batch, "plain"), ours(name, batch, "memory")
    what = f"{name}, batch {batch}"
    told = {"ours": f"{ratio:.2f} x plain, {at_once} rows at once", "theirs": "1"}
    rows = [Row(f"{what}: training step", "plain PyTorch", 1 / ratio, 1 / BARS[name, batch], **told)]
    if name in FLOORS:
        least = ours(name, batch, "floor")
        told = {"ours": f"{least:.2f} x plain", "theirs": "1"}
        rows.append(Row(f"{what}: floor, a step by hand", "plain PyTorch", 1 / least, None, **told))
    told = {"ours": f"{memory:.0f} MiB", "theirs": f"{plain_memory:.0f} MiB"}
    rows.append(Row(f"{what}: memory", "plain PyTorch", plain_memory / memory, 1 / 1.5, **told))
    python = peer("torch==2.13.0", "opacus==1.6.0")
    for mode in MODES:
        try:
            theirs = run(python, SOURCE + SHARED + OPACUS, name, batch, STEPS[name], mode)
        except PeerUnavailable as reason:
            print(f"Opacus, {mode}: left out ({reason})")
            continue
        told = {"ours": f"{ratio:.2f} x plain", "theirs": f"{theirs:.2f} x plain"}
        rows.append(Row(f"{what}: training step", f"Opacus 1.6.0 ({mode})", theirs / ratio, 1.0, **told))
    return rows


PIECES = {f"{name}-{batch}": partial(network, name, batch) for name, batch in BARS}
