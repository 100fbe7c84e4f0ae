"""Private training steps: time and memory beside plain PyTorch and Opacus 1.6.0, one thread, noise included.

Steps take turns with plain ones, and the quickest of each are compared. Memory is the median of several processes,
plain and private alike.

The piece `recipe` is some steps of the published recipe for MNIST (batches of 2048 by Poisson sampling, the small CNN),
beside the best mode of Opacus: a training is so many of them. Opacus is installed in an environment of its own when
first asked for.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row

SOURCE = (Path(__file__).parent / "_networks.py").read_text()
REPEATS = {"MLP": 40, "CNN": 15, "ResNet": 16, "ResNet-18": 6, "transformer": 8, "LSTM": 15}
BARS = {"MLP": 1.5, "CNN": 1.2, "ResNet": 1.2, "ResNet-18": 1.2, "transformer": 1.25, "LSTM": 2.0}
PROCESSES = 5  # for memory: the largest differs from one process to the next, plain or private
MODES = ("hooks", "ghost", "ew")

OURS = """
import json, sys
torch.set_num_threads(1)
name, count, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
model, inputs = NETWORKS[name]()
targets = torch.randint(0, 10, (len(inputs),))
plain = plain_step(model, inputs, targets, torch.optim.SGD(model.parameters(), lr=1e-3))

def private_step():
    from mosha.learning.gradients.engine import Engine
    from mosha.learning.noisy_gradients import Gradients
    from mosha.learning.plan import DPSGD
    from mosha.learning.training import make_losses
    from mosha.learning.updates import Updates
    from mosha.noise import secure
    plan = DPSGD(steps=10_000, rate=0.01, clip=1.0, noise_multiplier=1.0, batch=len(inputs), physical=len(inputs))
    engine = Engine(model)
    gradients = Gradients(plan, engine, make_losses(nn.CrossEntropyLoss(reduction="none")))
    gradients.reuse = True
    updates, optimizer = Updates(gradients), torch.optim.SGD(model.parameters(), lr=1e-3)
    class Everyone:  # the given batch: what is measured is the step, as it is for the others
        def draw(self, step, rng):
            return torch.arange(len(inputs)).numpy()
        def physical(self, units):
            yield units
    class Given:
        def positions(self, units, rng):
            return units, None
        def batch(self, positions):
            return inputs, targets
    def step():
        answer, _ = gradients.step(gradients.first(), (Given(), Everyone()), None, secure())
        updates.apply(answer)
        optimizer.step()
    return step, engine

before = peak()
if what == "memory of plain":
    seconds(plain, count)
    print(json.dumps(peak() - before))
elif what == "memory":
    import mosha.learning.frameworks.wrapping, mosha.learning.training  # loaded before memory is counted
    import numpy, mosha.noise
    mosha.noise.add_discrete_gaussian(numpy.zeros(1 << 17, numpy.int64), 2.0**21)  # with numba, where it is installed
    before = peak()
    seconds(private_step()[0], count)
    print(json.dumps(peak() - before))
else:
    best = [float("inf")] * 2
    for _ in range(count):  # in turns: the machine is quicker at one time than at another
        best[0] = min(best[0], seconds(plain, 2))
        step, engine = private_step()
        step()
        best[1] = min(best[1], seconds(step, 2))
        engine.detach()
    print(json.dumps(best))
"""

OPACUS = """
import json, sys, warnings
warnings.simplefilter("ignore")
torch.set_num_threads(1)
name, count, mode, what = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model, inputs = NETWORKS[name]()
targets = torch.randint(0, 10, (len(inputs),))
plain = plain_step(model, inputs, targets, torch.optim.SGD(model.parameters(), lr=1e-3))
base = seconds(plain, count) if what == "time" else 1
before = peak()
model = ModuleValidator.fix(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=len(inputs))
criterion = nn.CrossEntropyLoss()
options = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
model, optimizer, criterion, loader = with_opacus(mode, criterion, poisson_sampling=False, **options)

def step():
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()

step()
found = seconds(step, max(2, count // 3))
print(json.dumps(found / base if what == "time" else peak() - before))
"""


RECIPE = """
import json, sys
torch.set_num_threads(1)
torch.manual_seed(0)
model = cnn()[0]
pictures, labels = torch.randn(20_000, 1, 28, 28), torch.randint(0, 10, (20_000,))
count, mode = int(sys.argv[1]), sys.argv[2]
optimizer = torch.optim.SGD(model.parameters(), lr=4.0, momentum=0.9)
if mode == "ours":
    import mosha
    options = dict(rate=2048 / 20_000, batch=2048, clip=0.1, noise_multiplier=1.4, delta=1e-5, physical=512)
    plan = mosha.learning.DPSGD(steps=count + 1, **options)
    account = mosha.Ledger.memory().account("b", unit=mosha.Example(), epsilon=1e4, delta=1e-5, rule="pure")
    loss = nn.CrossEntropyLoss(reduction="none")
    training = plan.train(model, (pictures, labels), loss, optimizer, account=account)
    step = training.step
else:
    import warnings
    warnings.simplefilter("ignore")
    from torch.utils.data import DataLoader, TensorDataset
    loader = DataLoader(TensorDataset(pictures, labels), batch_size=2048)
    criterion = nn.CrossEntropyLoss()
    options = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.4, max_grad_norm=0.1)
    model, optimizer, criterion, loader = with_opacus(mode, criterion, poisson_sampling=True, **options)
    def batches():
        while True:
            yield from loader
    drawn = batches()
    def step():
        inputs, targets = next(drawn)
        optimizer.zero_grad()
        criterion(model(inputs), targets).backward()
        optimizer.step()
step()
start = time.process_time()
for _ in range(count):
    step()
print(json.dumps((time.process_time() - start) / count))
"""
STEPS = 8


def ours(name: str, what: str) -> Any:
    repeats = REPEATS[name] if what == "time" else 3
    command = [sys.executable, "-c", SOURCE + OURS, name, str(repeats), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def best_opacus(name: str) -> tuple[str, float, float]:
    """The quickest mode of Opacus that works: its name, its time over plain PyTorch, its memory in MiB."""
    python, found = peer("torch==2.13.0", "opacus==1.6.0"), {}
    for mode in MODES:
        try:
            found[mode] = run(python, SOURCE + OPACUS, name, REPEATS[name], mode, "time")
        except PeerUnavailable as reason:
            print(f"Opacus, {mode}: left out ({reason})")
    mode = min(found, key=lambda one: found[one])
    return mode, found[mode], run(python, SOURCE + OPACUS, name, 3, mode, "memory")


def recipe() -> list[Row]:
    """CPU time of steps of one recipe, sampling and all: the bar is 0.7 of the best mode of Opacus."""
    command = [sys.executable, "-c", SOURCE + RECIPE, str(STEPS), "ours"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    own, rows = json.loads(done.stdout), []
    python, found = peer("torch==2.13.0", "opacus==1.6.0"), {}
    for mode in MODES:
        try:
            found[mode] = run(python, SOURCE + RECIPE, STEPS, mode)
        except PeerUnavailable as reason:
            print(f"Opacus, {mode}: left out ({reason})")
    mode = min(found, key=lambda one: found[one])
    for name, theirs in found.items():
        bar = 1 / 0.7 if name in (mode, "hooks") else None
        told = {"ours": f"{own:.2f} s a step", "theirs": f"{theirs:.2f} s a step"}
        rows.append(Row("MNIST recipe: CPU time", f"Opacus 1.6.0 ({name})", theirs / own, bar, **told))
    return rows


def network(name: str) -> list[Row]:
    plain, private = ours(name, "time")
    plain_memory, memory = (
        statistics.median(ours(name, what) for _ in range(PROCESSES)) for what in ("memory of plain", "memory")
    )
    ratio = private / plain
    told = {"ours": f"{1e3 * private:.1f} ms", "theirs": f"{1e3 * plain:.1f} ms"}
    rows = [Row(f"{name}: step", "plain PyTorch", 1 / ratio, 1 / BARS[name], **told)]
    told = {"ours": f"{memory:.0f} MiB", "theirs": f"{plain_memory:.0f} MiB"}
    rows.append(Row(f"{name}: memory", "plain PyTorch", plain_memory / memory, 1 / 1.5, **told))
    mode, theirs, their_memory = best_opacus(name)
    told = {"ours": f"{ratio:.2f} x plain", "theirs": f"{theirs:.2f} x plain"}
    rows.append(Row(f"{name}: step", f"Opacus 1.6.0 ({mode})", theirs / ratio, 1.0, **told))
    told = {"ours": f"{memory:.0f} MiB", "theirs": f"{their_memory:.0f} MiB"}
    bar = 2.0 if name == "transformer" else None
    rows.append(Row(f"{name}: memory", f"Opacus 1.6.0 ({mode})", their_memory / memory, bar, **told))
    return rows


PIECES = {**{name: partial(network, name) for name in REPEATS}, "recipe": recipe}
