"""The simulator: all clients at once equals a plain loop; rounds are those of the plan."""

from typing import Any

import numpy as np
import pytest

from mosha import errors
from mosha.federated import Ask, ServerSide, Simulation, train
from tests.federated.parties import purse

torch = pytest.importorskip("torch")

torch.set_num_threads(1)


def network() -> Any:
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


def examples(clients: Any = 7, rows: int = 12, kind: Any = torch.float32) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(clients, rows, 6, generator=generator, dtype=kind), torch.randint(
        0, 3, (clients, rows), generator=generator
    )


def simulation(**changes: Any) -> Any:
    known = {"local_steps": 4, "batch": 5, "rate": 0.2}
    return Simulation(network(), torch.nn.functional.cross_entropy, examples(), **(known | changes))


def rows(sim: Any, chosen: Any, number: int = 1) -> Any:
    ask = Ask(number, sim.initial())
    return np.concatenate([block.updates for block in sim.updates(chosen, ask)])


@pytest.mark.parametrize("proximal", [0.0, 0.7])
@pytest.mark.parametrize("sizes", [None, [12, 3, 7, 1, 12, 5, 2]])
def test_all_at_once_is_one_by_one_to_float_tolerance(proximal: float, sizes: Any) -> None:
    together = simulation(proximal=proximal, sizes=sizes, vectorized=True)
    one_by_one = simulation(proximal=proximal, sizes=sizes, vectorized=False)
    assert np.abs(rows(together, range(7)) - rows(one_by_one, range(7))).max() < 1e-6


@pytest.mark.parametrize("proximal", [0.0, 0.7])
def test_what_is_played_back_is_what_was_recorded(proximal: float) -> None:
    """Rounds of one size are recorded the second time and played back the third; another size begins anew."""
    auto, plain = simulation(proximal=proximal), simulation(proximal=proximal, vectorized=False)
    for number, chosen in enumerate([range(5), range(5), range(2, 7), range(3), range(5)], 1):
        assert np.abs(rows(auto, chosen, number) - rows(plain, chosen, number)).max() < 1e-6
    assert (5, True) in auto._recorded
    assert (3, True) not in auto._recorded


def test_the_loop_is_plain_gradient_descent() -> None:
    sim = simulation(local_steps=1, batch=12)
    model = network()
    inputs, targets = examples()
    torch.nn.functional.cross_entropy(model(inputs[2]), targets[2]).backward()
    slope = np.concatenate([p.grad.reshape(-1).numpy() for p in model.parameters()])
    assert np.allclose(rows(sim, [2])[0], -0.2 * slope, atol=1e-6)


def test_what_one_client_sends_depends_on_no_other() -> None:
    sim = simulation()
    assert np.allclose(rows(sim, [4])[0], rows(sim, [1, 4, 6])[1], atol=1e-6)
    assert not np.allclose(rows(sim, [4], number=2)[0], rows(sim, [4])[0], atol=1e-6)


def test_a_proximal_pull_shortens_updates() -> None:
    assert np.linalg.norm(rows(simulation(proximal=3.0), [0])) < np.linalg.norm(rows(simulation(), [0]))


def test_a_model_that_cannot_be_traced_is_trained_one_by_one() -> None:
    class Stubborn(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(6, 3)

        def forward(self, x: Any) -> Any:
            return self.inner(x) * (1.0 if float(x.detach().sum()) > -1e9 else 0.0)

    sim = Simulation(Stubborn(), torch.nn.functional.cross_entropy, examples(), local_steps=2, batch=4, rate=0.1)
    assert rows(sim, range(7)).shape == (7, 21)
    assert sim._vectorized is False


def test_training_on_a_simulation_learns() -> None:
    """Three blobs, 40 clients, epsilon 8: random guessing gives a third; above 0.8 every time."""
    generator = torch.Generator().manual_seed(9)
    centres = torch.randn(3, 6, generator=generator) * 3
    targets = torch.randint(0, 3, (200, 20), generator=generator)
    inputs = centres[targets] + torch.randn(200, 20, 6, generator=generator)
    sim = Simulation(network(), torch.nn.functional.cross_entropy, (inputs, targets), local_steps=3, batch=10, rate=0.2)
    plan = ServerSide(rounds=15, clients=200, rate=0.5, clip=0.5).calibrate(epsilon=8, delta=1e-4)

    def accuracy(weights: Any) -> Any:
        with torch.no_grad():
            return float((sim.load(weights)(inputs[:20]).argmax(-1) == targets[:20]).float().mean())

    history = list(train(plan, sim, sim.initial(), account=purse(epsilon=8, delta=1e-4), evaluate=accuracy))  # type: ignore[arg-type]
    assert history[-1].metrics > 0.8
    assert history[-1].epsilon <= 8 * 1.01


@pytest.mark.parametrize(
    "changes", [{"local_steps": 0}, {"batch": -1}, {"rate": 0}, {"proximal": -1}, {"sizes": [1]}, {"sizes": [0] * 7}]
)
def test_bad_simulations_are_refused(changes: Any) -> None:
    with pytest.raises(errors.InvalidParameter):
        simulation(**changes)


def test_a_hundred_thousand_clients_pass_in_blocks_of_one_small_size() -> None:
    """Memory is that of a block, whatever the number of clients (`python -m benchmarks federated:many` measures it)."""
    examples = torch.zeros(100_000, 1, 2), torch.zeros(100_000, 1, dtype=torch.long)
    crowd = Simulation(
        torch.nn.Linear(2, 2), torch.nn.functional.cross_entropy, examples, local_steps=1, batch=1, rate=0.1
    )
    sizes = [len(block.updates) for block in crowd.updates(crowd.clients(), Ask(1, crowd.initial()))]
    assert sum(sizes) == 100_000
    assert max(sizes) <= 256
