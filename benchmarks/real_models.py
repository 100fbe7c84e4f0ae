"""Real models of transformers, timm and peft: the sum of clipped gradients beside a loop over single examples.

Random weights, five examples, dropout off, clip at the median norm. "exact": within 1e-3 of the loop; "refused": an
error in words before anything is paid; "wrong": a sum that is not the loop's. Opacus 1.6.0 does the same in its modes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from benchmarks._peers import peer, run
from benchmarks._rows import Row

ROOT = Path(__file__).resolve().parent.parent
SOURCE = (Path(__file__).parent / "_real_models.py").read_text()
REQUIREMENTS = ("torch==2.13.0", "opacus==1.6.0", "transformers==5.22.2", "timm==1.0.30", "peft==0.21.2")
OURS_TOO = ("lightning", "accelerate", "cryptography>=42", "scipy>=1.13.1", "numba>=0.61")

MAIN = """
import copy, json, os, sys, time, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
torch.set_num_threads(1)


def ours(model, x, y, clip):
    import numpy as np
    from mosha.core.errors import MoshaError
    from mosha.learning.gradients.engine import Engine
    from mosha.learning.checking.probe import probe
    losses = lambda m, batch: functional.cross_entropy(m(batch[0]), batch[1], reduction="none")
    try:
        engine = Engine(model)
        like = lambda rows: (x[torch.arange(rows) % len(x)], y[torch.arange(rows) % len(y)])
        probe(engine, losses, like, rows=8)
    except MoshaError as error:
        return "refused", error.code
    model.eval()
    rule = lambda norms: 1 / np.maximum(np.sqrt(np.square(norms).sum(axis=0)) / clip, 1)
    found = engine.clip(lambda m: losses(m, (x, y)), len(x), rule)
    engine.detach()
    return None, torch.cat([found.sums[n].flatten() if n in found.sums else torch.zeros(p.numel())
                            for n, p in model.named_parameters() if p.requires_grad])


def opacus(mode, model, x, y, clip):
    from opacus.grad_sample import GradSampleModule
    from torch.utils.data import DataLoader, TensorDataset
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    loader = DataLoader(TensorDataset(x, y), batch_size=len(x))
    options = dict(module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=0.0, max_grad_norm=clip,
                   poisson_sampling=False)
    from opacus import PrivacyEngine
    criterion = nn.CrossEntropyLoss()
    if mode == "ghost":
        made = PrivacyEngine().make_private(criterion=criterion, grad_sample_mode="ghost", **options)
        wrapped, optimizer, criterion, _ = made
    else:
        wrapped, optimizer, _ = PrivacyEngine().make_private(**options)
    wrapped.train()
    criterion(wrapped(x), y).backward()
    optimizer.pre_step()
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten()
                      for p in model.parameters() if p.requires_grad]) * len(x)


def judge(found, wanted):
    off = distance(found, wanted)
    return ("exact" if off < 1e-3 else "wrong", f"{off:.1e}")


rows = {}
for name in sys.argv[2].split("|"):
    torch.manual_seed(1)
    try:
        model, x, y = REAL[name]()
        wanted, clip = wanted_sum(model.eval(), x, y)
    except Exception as error:
        print(name, "cannot be built:", repr(error)[:300], file=sys.stderr)
        continue
    row = {}
    start = time.process_time()
    try:
        why, found = ours(copy.deepcopy(model), x, y, clip)
        row["ours"] = (why, found) if why else judge(found, wanted)
    except Exception as error:
        row["ours"] = ("fails", f"{type(error).__name__}: {error}"[:160])
    row["seconds"] = time.process_time() - start
    for mode in ("hooks", "ghost"):
        try:
            row[mode] = judge(opacus(mode, copy.deepcopy(model), x, y, clip), wanted)
        except Exception as error:
            row[mode] = ("fails", f"{type(error).__name__}: {error}"[:160])
    rows[name] = row
    print(name, row, file=sys.stderr, flush=True)
print(json.dumps(rows))
"""


@cache
def names() -> list[str]:
    """The models, in the order of the table."""
    listed = SOURCE.split("REAL = {", 1)[1].split("}", 1)[0]
    return [line.split('"')[1] for line in listed.splitlines() if '"' in line]


def main() -> list[Row]:
    python = peer(*REQUIREMENTS, *OURS_TOO)
    found = run(python, SOURCE + MAIN, ROOT / "src", "|".join(names()))
    for name, row in found.items():
        told: dict[str, Any] = ", ".join(f"{who} {' '.join(row[who])}" for who in ("ours", "hooks", "ghost"))  # type: ignore[assignment]
        print(f"{name}: {told}")
    rows = []
    for who in ("hooks", "ghost"):
        right, theirs = (sum(row[one][0] == "exact" for row in found.values()) for one in ("ours", who))
        told = {"ours": f"{right} of {len(found)}", "theirs": f"{theirs} of {len(found)}"}
        rows.append(
            Row("models whose clipped sums are exact", f"Opacus 1.6.0 ({who})", right / max(1, theirs), 1.0, **told)
        )
    wrong = sum(row["ours"][0] in ("wrong", "fails") for row in found.values())
    rows.append(
        Row("models with wrong sums, or errors without a word", "none", float(wrong == 0), 1.0, ours=f"{wrong}")
    )
    return rows
