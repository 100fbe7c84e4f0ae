"""Federated rounds: a simulated DP round beside Flower and pfl, secure aggregation, memory, accountant, accuracy.

One round: MLP of 4810 weights, 100 clients with 100 examples, batches of 20, 5 local steps, clip 1, noise multiplier 1,
one thread. CPU seconds of all processes in a steady round. Where the bar is a time or a size, the ratio is bar / ours.
"""

from __future__ import annotations

import gzip
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _federated_peers as peers
from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row, best_cpu

FLOWER = ("flwr[simulation]==1.41.0", "torch==2.13.0")
PFL = ("pfl==0.6.0", "torch==2.13.0")


def simulated(clients: int) -> tuple[Any, ...]:
    """One DP round and the same round without DP."""
    import torch

    from mosha.federated import Ask, ServerSide, Simulation
    from mosha.noise import secure

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(1)
    examples = (
        torch.randn(clients, 100, 64, generator=generator),
        torch.randint(0, 10, (clients, 100), generator=generator),
    )
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    loss = torch.nn.functional.cross_entropy
    sim = Simulation(model, loss, examples, local_steps=5, batch=20, rate=0.1)
    plan = ServerSide(rounds=1000, clients=clients, clip=1.0, noise_multiplier=1.0)
    measurement, decode, weights = plan.measurement(sim.coordinates), plan.decoder(), sim.initial()

    def private() -> object:
        answer, _ = measurement.step(measurement.init(), sim, Ask(1, weights), secure())
        return weights + decode(answer)

    return private, lambda: weights + sim.mean(range(clients), Ask(1, weights))


def rounds() -> list[Row]:
    private, plain = simulated(100)
    many, _ = simulated(1000)
    for work in (private, plain, many):
        work()
    ours, without = best_cpu([private, plain], repeats=40)
    ours_again, thousand = best_cpu([private, many], repeats=12)
    hundred = min(ours, ours_again)
    found = [
        Row("1000 clients, in rounds of 100", "10 times 100", 10 * hundred / thousand, 1.0,
            f"{thousand:.3f} s", f"{10 * hundred:.3f} s"),
        Row("DP overhead on a round", "1.15", 1.15 / (ours / without), 1.0, f"{ours / without:.3f}", "1.15"),
    ]  # fmt: skip
    for name, requirements, script, bar in (
        ("Flower 1.41 simulation", FLOWER, peers.FLOWER, 60),
        ("pfl 0.6", PFL, peers.PFL, 10),
    ):
        try:
            theirs = run(peer(*requirements), script, 100, 5)
        except PeerUnavailable as problem:
            print(f"{name} is left out: {problem}", file=sys.stderr)
            continue
        shown = f"{theirs['cpu']:.3f} s, {theirs['memory'] / 2**20:.0f} MB"
        found.append(Row("DP round, 100 clients", name, theirs["cpu"] / ours, bar, f"{ours:.4f} s", shown))
    return found


def secure_aggregation(members: int = 100, weights: int = 100_000, vanished: int = 10) -> list[Row]:
    """Exactness is asserted; times are CPU milliseconds of one client, and of the server, best of three."""
    from mosha.federated import Distributed, SecureClient, SecureServer
    from mosha.federated.secure.rotation import Rotation
    from mosha.noise import secure

    plan = Distributed(rounds=1, clients=members, clip=1.0, survivors=80, noise_multiplier=1.0, partners=20)
    update = np.random.default_rng(1).normal(size=weights).astype(np.float32)
    best = [math.inf, math.inf]
    for _ in range(3):
        names = range(1, members + 1)
        session = plan.session(names, Rotation(weights, b"").width, secure())
        spent = {"client": 0.0, "server": 0.0}

        def timed(who: Any, work: Any, *arguments: Any, spent: Any = spent) -> Any:
            start = time.process_time()
            answer = work(*arguments)
            spent[who] += time.process_time() - start
            return answer

        server = SecureServer(session)
        clients = {m: timed("client", SecureClient, m, session, secure()) for m in names}
        for m in names:
            timed("server", server.add_keys, m, clients[m].keys)
        for m in names:
            letters = timed("client", clients[m].share, server.roster)
            timed("server", server.add_letters, m, letters)
        expected = np.zeros(session.width, np.uint32)
        for m in names[vanished:]:
            encoded = timed("client", plan.encode, update, session.label, secure())
            masked = timed("client", clients[m].masked, encoded, timed("server", server.letters_to, m))
            timed("server", server.add_masked, m, masked)
            expected += encoded
        for m in server.survivors:
            timed("server", server.add_shares, m, timed("client", clients[m].unmask, server.survivors))
        total = timed("server", server.total)
        assert (total == expected).all(), "the sum must be exact"
        timed("server", Rotation(weights, session.label).back, total.view(np.int32).astype(np.float64))
        best = [min(best[0], spent["client"] / members), min(best[1], spent["server"])]
    what = f"secure sum of {members}, {vanished} vanish, {weights} weights, exact"
    return [
        Row(f"{what}: one client", "60 ms", 0.060 / best[0], 1.0, f"{1000 * best[0]:.1f} ms", "60 ms"),
        Row(f"{what}: server", "120 ms", 0.120 / best[1], 1.0, f"{1000 * best[1]:.1f} ms", "120 ms"),
    ]


def memory() -> Row:
    """The peak memory of a fresh process that runs five rounds of 100 clients."""
    script = "from benchmarks.federated import *; r, _ = simulated(100); [r() for _ in range(5)]; print(peak())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    used = float(done.stdout)
    return Row("memory, 100 clients", "500 MB", 500e6 / used, 1.0, f"{used / 1e6:.0f} MB", "500 MB")


def peak() -> int:
    """The most memory that this process has held; `getrusage` would count what its parent held when it was started."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def many_clients() -> list[Row]:
    """One DP round of 10^4 and of 10^5 clients with 4 examples of 16 numbers, MLP of 1,210 weights: what a round adds
    to the memory that the data take, in fresh processes. Bounded means that ten times the clients add the same."""
    script = """
import time, torch, sys
from benchmarks.federated import peak
from mosha.federated import Ask, ServerSide, Simulation
from mosha.noise import secure
clients = int(sys.argv[1])
torch.set_num_threads(1)
nn = torch.nn
examples = torch.randn(clients, 4, 16), torch.randint(0, 10, (clients, 4))
model = nn.Sequential(nn.Linear(16, 44), nn.ReLU(), nn.Linear(44, 10))
sim = Simulation(model, nn.functional.cross_entropy, examples, local_steps=2, batch=2, rate=0.1)
plan = ServerSide(rounds=2, clients=clients, rate=1.0, clip=1.0, noise_multiplier=1.0)
made, before, start = plan.measurement(sim.coordinates), peak(), time.process_time()
made.step(made.init(), sim, Ask(1, sim.initial()), secure())
print((peak() - before) / 2**20, time.process_time() - start)
"""
    found = {}
    for clients in (10_000, 100_000):
        command = [sys.executable, "-c", script, str(clients)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[clients] = [float(number) for number in done.stdout.split()]
    (few, _), (many, spent) = found.values()
    what = "memory of a round, 10^5 clients beside 10^4"
    told = {"ours": f"{many:.0f} MiB, {spent:.1f} CPU s", "theirs": f"{few:.0f} MiB"}
    return [Row(what, "the same", few / many, 0.5, **told)]


def accountant() -> Row:
    """Epsilon after a round, the best of rounds 380 to 420 in five runs: the slower of a dense and a sparse rate."""
    from mosha.federated import ServerSide
    from mosha.federated.training import Spending

    slowest = 0.0
    for rate in (0.01, 0.2):
        plan = ServerSide(rounds=500, clients=1000, rate=rate, clip=1.0, noise_multiplier=1.0, delta=1e-6)
        times = []
        for _ in range(5):
            spending = Spending(plan)
            for number in range(1, 421):
                start = time.process_time()
                spending.after(number)
                times += [time.process_time() - start] if number > 380 else []
        slowest = max(slowest, min(times))
    return Row("accountant, round 400", "1 ms", 1e-3 / slowest, 1.0, f"{1000 * slowest:.2f} ms", "1 ms")


def accuracy(clients: int = 1000, rounds: int = 30) -> list[Row]:
    """MNIST over 1000 clients, client level, epsilon 8, delta 1e-4; the same run without noise beside it."""
    import torch

    import mosha
    from mosha.federated import Ask, FedAvg, ServerSide, Simulation, train
    from mosha.federated.clipping import STEPS, bounded_steps

    folder = Path(os.environ.get("MOSHA_DATA", Path(__file__).parents[2] / "shared" / "data")) / "mnist"
    if not folder.is_dir():
        print("MNIST is left out: set MOSHA_DATA", file=sys.stderr)
        return []
    torch.set_num_threads(1)
    torch.manual_seed(0)
    inputs, targets = _digits(folder, "train", clients)
    test, answers = _digits(folder, "t10k", 1)
    model = torch.nn.Sequential(torch.nn.Linear(784, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    loss = torch.nn.functional.cross_entropy
    sim = Simulation(model, loss, (inputs, targets), local_steps=6, batch=20, rate=0.3)
    outer = FedAvg(rate=1.0, momentum=0.9)
    plan = ServerSide(rounds=rounds, clients=clients, clip=0.5, outer=outer).calibrate(epsilon=8, delta=1e-4)
    account = mosha.Ledger.memory().account("phones", unit=mosha.Client(), epsilon=8, delta=1e-4, rule="pure")
    initial = sim.initial()

    def right(weights: Any) -> float:
        return float((sim.load(weights)(test[0]).argmax(1) == answers[0]).float().mean())

    for done in train(plan, sim, initial, account=account):  # type: ignore[arg-type]
        private = done.weights
    weights, velocity = initial, outer.begin(initial.size)
    for number in range(1, rounds + 1):
        blocks = sim.updates(range(clients), Ask(number, weights))
        total = sum(bounded_steps(block.updates, plan.clip)[0].sum(axis=0, dtype=np.int64) for block in blocks)  # type: ignore[arg-type]
        weights, velocity = outer.advance(weights, total * (plan.clip / STEPS / clients), velocity)  # type: ignore[arg-type, operator]
    with_noise, without = right(private), right(weights)
    lost = max(100 * (without - with_noise), 0.1)
    what = "MNIST, 1000 clients, epsilon 8: points lost to noise"
    return [Row(what, "3 points", 3 / lost, 1.0, f"{100 * with_noise:.2f} %", f"{100 * without:.2f} % without noise")]


def _digits(folder: Path, name: str, clients: int) -> tuple[Any, ...]:
    import torch

    pixels = gzip.decompress((folder / f"{name}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{name}-labels-idx1-ubyte.gz").read_bytes())[8:]
    inputs = np.frombuffer(pixels, np.uint8).reshape(clients, -1, 784).astype(np.float32) / 255
    targets = np.frombuffer(labels, np.uint8).reshape(clients, -1).astype(np.int64)
    return torch.from_numpy(inputs), torch.from_numpy(targets)


PIECES = {
    "rounds": rounds,
    "secure": secure_aggregation,
    "memory": lambda: [memory()],
    "many": many_clients,
    "accountant": lambda: [accountant()],
    "accuracy": accuracy,
}
