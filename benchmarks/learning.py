"""Private training steps: time and memory beside plain PyTorch and Opacus 1.6.0, one thread, noise included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row

SOURCE = (Path(__file__).parent / "_networks.py").read_text()
REPEATS = {"MLP": 30, "CNN": 15, "ResNet": 5, "transformer": 3, "LSTM": 12}
BARS = {"MLP": 1.5, "CNN": 1.2, "ResNet": 1.2, "transformer": 1.25, "LSTM": 2.0}

OURS = """
import json, sys
torch.set_num_threads(1)
name, count, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.manual_seed(0)
model, inputs = NETWORKS[name]()
targets = torch.randint(0, 10, (len(inputs),))
plain = plain_step(model, inputs, targets, torch.optim.SGD(model.parameters(), lr=1e-3))

def private_step():
    from mosha.learning.engine import Engine
    from mosha.learning.mechanism import Gradients
    from mosha.learning.plan import DPSGD
    from mosha.learning.training import losses_by
    from mosha.learning.updates import Updates
    from mosha.noise import secure
    plan = DPSGD(steps=10_000, rate=0.01, clip=1.0, noise_multiplier=1.0, batch=len(inputs), physical=len(inputs))
    engine = Engine(model)
    gradients = Gradients(plan, engine, losses_by(nn.CrossEntropyLoss(reduction="none")))
    gradients.reuse = True
    updates, optimizer = Updates(gradients), torch.optim.SGD(model.parameters(), lr=1e-3)
    class Everyone:  # the given batch: what is measured is the step, as it is for the others
        def draw(self, step, rng):
            return torch.arange(len(inputs)).numpy()
        def physical(self, units, each):
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
    import mosha.learning.wrapping, mosha.learning.training  # loaded before memory is counted
    import numpy, mosha.noise
    mosha.noise.discrete_gaussian(2.0**21, 100)
    before = peak()
    seconds(private_step()[0], count)
    print(json.dumps(peak() - before))
else:
    best = [float("inf")] * 2
    for _ in range(count):
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
name, count, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
from opacus import PrivacyEngine
from opacus.validators import ModuleValidator
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model, inputs = NETWORKS[name]()
targets = torch.randint(0, 10, (len(inputs),))
plain = plain_step(model, inputs, targets, torch.optim.SGD(model.parameters(), lr=1e-3))
base = seconds(plain, count)
before = peak()
model = ModuleValidator.fix(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=len(inputs))
criterion = nn.CrossEntropyLoss()
options = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0,
               poisson_sampling=False, grad_sample_mode=mode)
if mode == "ghost":
    model, optimizer, criterion, loader = PrivacyEngine().make_private(criterion=criterion, **options)
else:
    if mode == "ew":
        options["loss_reduction"] = "mean"
    model, optimizer, loader = PrivacyEngine().make_private(**options)

def step():
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()

step()
found = seconds(step, max(2, count // 3))
print(json.dumps([found / base, peak() - before]))
"""


def ours(name: str, what: str) -> object:
    repeats = REPEATS[name] if what == "time" else 3
    command = [sys.executable, "-c", SOURCE + OURS, name, str(repeats), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def best_opacus(name: str) -> tuple[str, float, float]:
    """The quickest mode of Opacus that works: its name, its time over plain PyTorch, its memory in MiB."""
    python = peer("torch==2.13.0", "opacus==1.6.0")
    found = []
    for mode in ("hooks", "ghost", "ew"):
        try:
            ratio, memory = run(python, SOURCE + OPACUS, name, REPEATS[name], mode)
        except PeerUnavailable:
            continue
        found.append((mode, ratio, memory))
    return min(found, key=lambda one: one[1])


def main(wanted: tuple[str, ...] = tuple(REPEATS)) -> list[Row]:
    rows = []
    for name in wanted:
        plain, private = ours(name, "time")
        plain_memory, memory = ours(name, "memory of plain"), ours(name, "memory")
        ratio = private / plain
        told = {"ours": f"{1e3 * private:.1f} ms", "theirs": f"{1e3 * plain:.1f} ms"}
        rows.append(Row(f"{name}: step", "plain PyTorch", 1 / ratio, 1 / BARS[name], **told))
        told = {"ours": f"{memory:.0f} MiB", "theirs": f"{plain_memory:.0f} MiB"}
        rows.append(Row(f"{name}: memory", "plain PyTorch", plain_memory / memory, 1 / 1.5, **told))
        mode, theirs, their_memory = best_opacus(name)
        told = {"ours": f"{ratio:.2f} x plain", "theirs": f"{theirs:.2f} x plain"}
        bar = None if name == "transformer" else 1.0
        rows.append(Row(f"{name}: step", f"Opacus 1.6.0 ({mode})", theirs / ratio, bar, **told))
        told = {"ours": f"{memory:.0f} MiB", "theirs": f"{their_memory:.0f} MiB"}
        rows.append(Row(f"{name}: memory", f"Opacus 1.6.0 ({mode})", their_memory / memory, None, **told))
    return rows
