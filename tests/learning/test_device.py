"""Models on another device: the same sums, bit by bit, and nothing of it paid for where its kernels are not steady."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, TensorDataset

import mosha
from mosha.core.errors import DataError, InvalidParameter
from mosha.learning.checking.kernels import check_kernels
from mosha.learning.dropout_randomness import DropoutCoins
from mosha.learning.gradients import device as devices
from mosha.learning.gradients.engine import Engine
from mosha.learning.noisy_gradients import clipping_rule
from mosha.learning.training import make_losses
from mosha.noise import secure
from tests.learning.every_layer import MODELS, losses_of
from tests.learning.pretended_device import BACKEND, DEVICE, Pretending, move

torch.set_num_threads(1)
aten = torch.ops.aten
MAKES_TENSORS = {name for name in MODELS if "attention" in name} | {"bag of tokens, summed"}
"""Models that make tensors of the CPU in their own forward pass: PyTorch refuses them on any other device."""

RULE = clipping_rule("flat", clip=0.5, scale=1.0)


def clip(model: nn.Module, batch: tuple[Tensor, ...], memory: int, each: int) -> Any:
    engine = Engine(model, memory=memory)
    try:
        with sdpa_kernel(SDPBackend.MATH):  # the CPU alone has a kernel of its own for attention
            return engine.clip(lambda model: losses_of(model, batch), len(batch[0]), RULE, each=each)
    finally:
        engine.detach()


@pytest.mark.parametrize("name", sorted(MODELS.keys() - MAKES_TENSORS))
@pytest.mark.parametrize(("memory", "each"), [(0, 1), (1 << 30, 1), (0, 3)])
def test_sums_and_norms_are_bit_by_bit_those_of_the_cpu(name: str, memory: int, each: int) -> None:
    make, draw = MODELS[name]
    model, batch = make(), draw(6)
    here = clip(copy.deepcopy(model), batch, memory, each)
    with Pretending():
        there = clip(move(model), tuple(values.to(DEVICE) for values in batch), memory, each)
    assert torch.equal(here.norms, there.norms)
    assert all(torch.equal(values, there.sums[name]) for name, values in here.sums.items())
    assert there.losses.device == DEVICE


def plan(steps: int = 3, **options: Any) -> Any:
    return mosha.learning.DPSGD(steps=steps, rate=0.2, clip=1.0, noise_multiplier=1.0, batch=8, delta=1e-5, **options)


def account() -> Any:
    return mosha.Ledger.memory().account("test", unit=mosha.Example(), epsilon=1e3, delta=1e-5, rule="pure")


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.5), nn.LayerNorm(6), nn.Linear(6, 2))


def data(rows: int = 40) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 4), torch.randint(0, 2, (rows,))


LOSS = nn.CrossEntropyLoss(reduction="none")


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "ADMITTED", (*devices.ADMITTED, DEVICE.type))


@pytest.mark.usefixtures("admitted")
@pytest.mark.parametrize(
    "options", [{}, {"loss_at_most": 2.0}, {"clipping": "adaptive"}, {"average": 0.9}, {"physical": 8}]
)
def test_a_training_runs_where_the_model_is(options: dict[str, Any], tmp_path: Path) -> None:
    paying, place = account(), tmp_path / "training"
    with Pretending():
        model = move(network())
        before = [p.detach().cpu() for p in model.parameters()]
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        given = {"account": paying, "key": "one", "checkpoint": place}
        with plan(**options).train(model, data(), LOSS, optimizer, **given) as training:
            assert [step.number for step in training] == [1, 2, 3]
        assert all(p.device == DEVICE for p in model.parameters())
        assert all(not torch.equal(old, p.detach().cpu()) for old, p in zip(before, model.parameters(), strict=True))
    assert paying.spent > 0


@pytest.mark.usefixtures("admitted")
def test_a_loop_of_ones_own_runs_where_the_model_is() -> None:
    with Pretending():
        model = move(network())
        loader: DataLoader[Any] = DataLoader(TensorDataset(*data()), batch_size=8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        private, optimizer, loader = mosha.learning.private(model, optimizer, loader, plan=plan(), account=account())  # type: ignore[assignment]
        while loader.has_more():  # type: ignore[attr-defined]
            for inputs, targets in loader:
                nn.functional.cross_entropy(private(inputs.to(DEVICE)), targets.to(DEVICE)).backward()
                optimizer.step()
                optimizer.zero_grad()


def test_other_devices_and_several_devices_are_refused_unpaid() -> None:
    paying = account()
    with Pretending():
        whole, part = move(network()), network()
        part[0] = move(part[0])
        for model, code in ((whole, "learning.device_not_admitted"), (part, "learning.several_devices")):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with pytest.raises(InvalidParameter) as refusal:
                plan().train(model, data(), LOSS, optimizer, account=paying)
            assert refusal.value.code == code
            assert DEVICE.type in refusal.value.render("zh")
    assert paying.spent == 0


def cut(values: Tensor) -> Tensor:
    return values.to(torch.bfloat16).float()


def cut_products(a: Tensor, b: Tensor, **options: Any) -> Tensor:
    """What a device does that was told to be quick, and does not listen."""
    return torch.mm(cut(a), cut(b), **options) if a.shape[0] != ROWS else torch.mm(a, b, **options)


def add_in_any_order(a: Tensor, b: Tensor, **options: Any) -> Tensor:
    found = torch.mm(a, b, **options)
    return found.mul_(1 + 2.0**-20 * torch.rand(()))


def mix_rows(bias: Tensor, a: Tensor, b: Tensor, **options: Any) -> Tensor:
    found = torch.addmm(bias, a, b, **options)
    return found + 2.0**-20 * found.mean(dim=0)


ROWS = 24
FAULTS: dict[str, tuple[Any, Callable[..., Tensor]]] = {
    "learning.kernels_unsteady": (aten.mm.default, add_in_any_order),
    "learning.kernels_mix": (aten.addmm.default, mix_rows),
}


@pytest.mark.parametrize("code", FAULTS)
def test_kernels_that_are_not_what_is_assumed_are_found(code: str) -> None:
    operation, other = FAULTS[code]
    with Pretending({operation: other}):
        engine = Engine(move(network()))
        with pytest.raises(DataError) as refusal:
            check_kernels(engine, make_losses(LOSS), data(ROWS))
    assert refusal.value.code == code
    assert refusal.value.spent == "nothing"


def test_products_of_cut_numbers_are_found() -> None:
    """Of one unit a weighted sum is as long as its norm; where its factors are cut, it is not."""

    def cut_first(a: Tensor, b: Tensor, **options: Any) -> Tensor:
        return torch.mm(a * 1.002, b, **options)  # a cut of 8 bits, in its worst direction

    with Pretending({aten.mm.out: cut_first, aten.mm.default: cut_first}):
        engine = Engine(move(nn.Sequential(nn.Linear(4, 2))))
        with pytest.raises(DataError) as refusal:
            check_kernels(engine, make_losses(LOSS), data(ROWS))
    assert refusal.value.code == "learning.kernels_inexact"


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_kernels_of_the_cpu_pass(name: str) -> None:
    make, draw = MODELS[name]
    engine = Engine(make())
    check_kernels(engine, losses_of, draw(12))
    check_kernels(engine, losses_of, draw(12), each=3)


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_what_a_user_said_of_precision_changes_no_sum(precision: str) -> None:
    """`torch.set_float32_matmul_precision` lets some processors cut factors to 8 bits: norms and sums would differ."""
    make, draw = MODELS["linear over positions"]
    model, batch = make(), draw(300)
    engine = Engine(model, memory=0)
    losses = engine.record(lambda model: losses_of(model, batch), 300)
    records = {key: list(found) for key, found in engine.tape.records.items()}
    wanted = engine.clip_recorded(RULE, losses=losses)
    before = [kernels.fp32_precision for kernels in devices.KERNELS]
    torch.set_float32_matmul_precision(precision)
    try:
        set_to = [kernels.fp32_precision for kernels in devices.KERNELS]
        engine.tape.records = records
        found = engine.clip_recorded(RULE, losses=losses)
        with devices.compute_exactly(), devices.compute_exactly():
            assert all(kernels.fp32_precision in devices.EXACT for kernels in devices.KERNELS)
        assert [kernels.fp32_precision for kernels in devices.KERNELS] == set_to
    finally:
        torch.set_float32_matmul_precision("highest")
        for kernels, was in zip(devices.KERNELS, before, strict=True):
            kernels.fp32_precision = was
    assert torch.equal(wanted.norms, found.norms)
    assert all(torch.equal(values, found.sums[name]) for name, values in wanted.sums.items())


def test_a_precision_that_is_left_to_the_setting_above_it_stays_left_to_it() -> None:
    torch.backends.fp32_precision = "tf32"  # type: ignore[attr-defined]
    try:
        with devices.compute_exactly():
            pass
        torch.backends.fp32_precision = "ieee"  # type: ignore[attr-defined]
        assert {kernels.fp32_precision for kernels in devices.KERNELS} <= {"ieee", "none"}
    finally:
        torch.backends.fp32_precision = "none"  # type: ignore[attr-defined]


def test_masks_on_a_device_come_of_a_secret_state_and_the_generator_goes_on() -> None:
    before, coins = BACKEND.state.clone(), DropoutCoins(secure(), DEVICE)
    seen = []
    for _ in range(2):
        with coins.fresh():
            seen.append(BACKEND.state.clone())
    assert torch.equal(BACKEND.state, before)
    assert not torch.equal(seen[0], seen[1])
    assert all(int(state.view(torch.int64)[1]) % 4 == 0 for state in seen)
    assert np.unpackbits(seen[0].numpy()[:8]).sum() > 8  # fails once in 3e-10: 64 fair bits, at most 8 of them set


def test_steady_kernels_are_asked_for_only_inside() -> None:
    def asked() -> tuple[bool, bool]:
        return torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark

    torch.backends.cudnn.benchmark = True
    try:
        before = asked()
        with devices.hold_kernels(DEVICE):
            inside = asked()
        after = asked()
    finally:
        torch.backends.cudnn.benchmark = False
    assert (before, inside, after) == ((False, True), (True, False), (False, True))
