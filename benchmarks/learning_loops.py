"""Loops of other libraries with what `mosha.learning` gives: Lightning, Accelerate, the Trainer of Hugging Face.

Real packages in an environment of their own. A loop clears its bar if it took every step that was paid for and learned.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks._peers import peer, run
from benchmarks._rows import Row
from benchmarks.real_models import OURS_TOO, REQUIREMENTS

ROOT = Path(__file__).resolve().parent.parent
MOSHA = ("sqlglot>=30.19", "duckdb>=2.0,<3", "rich>=13.9", "typer>=0.20")

SHARED = """
import json, logging, os, sys, tempfile, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
missing = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    missing.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
import mosha
torch.set_num_threads(1)
inputs = torch.randn(400, 4)
labels = (inputs[:, 0] > 0).long()
data = TensorDataset(inputs, labels)
shape = dict(epochs=3, rate=0.1, clip=1.0, batch=40, physical=32, noise_multiplier=1.0, delta=1e-5)
plan = mosha.learning.DPSGD(**shape)
account = mosha.Ledger.memory().account("t", unit=mosha.Example(), epsilon=1e4, delta=1e-5, rule="pure")

def wrap(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return mosha.learning.private(model, optimizer, DataLoader(data, batch_size=40), plan=plan, account=account)

def tell(optimizer, right):
    print(json.dumps([optimizer.run.remaining, float(right.float().mean())]))
"""
LOOPS = {
    "Lightning": """
import lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def forward(self, x):
        return self.layer(x)
    def training_step(self, batch, number):
        return functional.cross_entropy(self(batch[0]), batch[1])
    def configure_optimizers(self):
        return self.private
model, optimizer, loader = wrap(Model())
model.private = optimizer
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
lightning.Trainer(max_epochs=12, accelerator="cpu", **quiet).fit(model, loader.continue_batches())
tell(optimizer, model(inputs).argmax(dim=1) == labels)
""",
    "Accelerate": """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model, optimizer, loader = wrap(nn.Linear(4, 2))
model, prepared = accelerator.prepare(model, optimizer)
while loader.has_more():
    for some, wanted in loader:
        accelerator.backward(functional.cross_entropy(model(some), wanted))
        prepared.step()
        prepared.zero_grad()
tell(optimizer, model(inputs).argmax(dim=1) == labels)
""",
    "Trainer of Hugging Face": """
import transformers
shape = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2)
model = transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=50, **shape))
tokens = torch.randint(5, 25, (400, 8)) + 20 * labels[:, None]
rows = [{"input_ids": t, "attention_mask": torch.ones_like(t), "labels": int(y)} for t, y in zip(tokens, labels)]
where = tempfile.mkdtemp()
quiet = dict(use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, logging_strategy="no")
arguments = transformers.TrainingArguments(output_dir=where, learning_rate=5e-3, **quiet)
trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
loss = lambda out, wanted: functional.cross_entropy(out.logits, wanted, reduction="none")
plan = mosha.learning.DPSGD(epochs=6, rate=0.1, clip=1.0, batch=40, physical=32, noise_multiplier=0.3, delta=1e-5)
mosha.learning.make_trainer_private(trainer, plan=plan, account=account, loss=loss)
sys.stdout = open(os.devnull, "w")
trainer.train()
sys.stdout = sys.__stdout__
optimizer = trainer.optimizer.optimizer
optimizer.close()
assert trainer.state.global_step == plan.steps
tell(optimizer, model.eval()(input_ids=tokens).logits.argmax(dim=1) == labels)
""",
}


def main() -> list[Row]:
    python = peer(*REQUIREMENTS, *OURS_TOO, *MOSHA)
    rows = []
    for name, loop in LOOPS.items():
        left, right = run(python, SHARED + loop, ROOT / "src")
        told = {"ours": f"{left} steps left, {right:.0%} right", "theirs": "0 left, 80%"}
        rows.append(
            Row(f"{name}: every paid step is taken, and it learns", name, right / 0.8 * (left == 0), 1.0, **told)
        )
    return rows
