"""Streams: errors against lower bounds and trees, throughput of streaming noise, planning, memory, crashes."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from scipy.signal import lfilter

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row, best_cpu
from mosha import Event, Ledger, noise
from mosha.streams import counter
from mosha.streams.alarms import alarm_noise
from mosha.streams.blt import design
from mosha.streams.plan import Budget
from mosha.streams.stream import begin, new_tape
from mosha.streams.tape import Law, Tape
from mosha.streams.toeplitz import lower_bound, root_coefficients
from mosha.streams.tree import binary_deviation
from tests.streams import killed

HORIZONS: Final = {1 << 10: (1.03, 13.1), 1 << 16: (1.02, 24.8), 1 << 20: (1.015, 33.9)}
KILLS: Final = 1000

JAX: Final = """
import json, time
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from jax_privacy.matrix_factorization import buffered_toeplitz as b
matrix = b.BufferedToeplitz.from_rational_approx_to_sqrt_x(6).inverse_as_streaming_matrix()
step = jax.jit(matrix.multiply_next)
state = matrix.init_multiply(jnp.zeros(()))
key = jax.random.PRNGKey(0)
draw = jax.jit(lambda key: (lambda pair: (pair[0], jax.random.normal(pair[1])))(jax.random.split(key)))
key, z = draw(key)
value, state = step(z, state)
best = float("inf")
for _ in range(3):
    start = time.process_time()
    for _ in range(500):
        key, z = draw(key)
        value, state = step(z, state)
    value.block_until_ready()
    best = min(best, (time.process_time() - start) / 500)
count = 1 << 16
move = jax.jit(lambda key, state: jax.lax.scan(
    lambda state, z: matrix.multiply_next(z, state)[::-1], state, jax.random.normal(key, (count,))))
state, values = move(key, state)
many = float("inf")
for _ in range(3):
    start = time.process_time()
    key, _ = draw(key)
    state, values = move(key, state)
    values.block_until_ready()
    many = min(many, (time.process_time() - start) / count)
print(json.dumps({"step": best, "chunk": many}))
"""


def main() -> list[Row]:
    return [*gaussian_errors(), *pure_errors(), *planning_and_speed(), *memory(), *false_negatives(), *crashes()]


def exact_errors(horizon: int) -> tuple[float, float]:
    """Root mean square and largest deviation of the planned stream at rho = 1/2, from its exact covariance."""
    plan = counter(unit=Event(), horizon=horizon, rho=0.5).plan
    buffers = plan.mechanism.buffers
    unit = float(plan.law.scale) * plan.worth
    left = horizon - np.arange(horizon, dtype=float)
    norms = np.concatenate(
        [np.sqrt(buffers.encoder_squares(part)) for part in np.array_split(left, 64 + horizon // 4096)]
    )
    h = 1 - np.array(buffers.eta)
    _, betas = buffers.decoder_residues()
    weights = betas * (1 - h) / h
    time_ = np.arange(horizon)
    # u_t = z_t - sum w_i s_i(t); s_i(t+1) = h_i (s_i(t) + z_t); N_t = N_(t-1) + d_t u_t
    products = np.multiply.outer(h, h)
    state = [
        [products[i, j] * -np.expm1(time_ * np.log(products[i, j])) / (1 - products[i, j]) for j in range(h.size)]
        for i in range(h.size)
    ]
    own = 1 + sum(weights[i] * weights[j] * state[i][j] for i in range(h.size) for j in range(h.size))
    shared = np.zeros(horizon)
    for i in range(h.size):
        with_u = -sum(weights[j] * state[i][j] for j in range(h.size))  # cov(u_t, s_i(t))
        moved = norms * (with_u + 1)  # added to cov(N, s_i(t + 1)) / h_i at step t: d_t cov(u_t, s_i(t) + z_t)
        carried = lfilter([0.0, h[i]], [1.0, -h[i]], moved)
        shared -= weights[i] * carried
    variance = np.cumsum(norms**2 * own + 2 * norms * shared)
    return unit * math.sqrt(float(np.mean(variance))), unit * math.sqrt(float(variance.max()))


def gaussian_errors() -> list[Row]:
    rows = []
    for horizon, (bar, _) in HORIZONS.items():
        error, largest = exact_errors(horizon)
        least = lower_bound(horizon)
        root = float(np.sum(root_coefficients(horizon) ** 2))
        what = f"Gaussian, T = 2^{horizon.bit_length() - 1}"
        rows += [
            Row(
                f"{what}: error over lower bound",
                "any factorisation",
                least / error,
                1 / bar,
                f"{error:.4f}",
                f"{least:.4f}",
            ),
            Row(
                f"{what}: largest error",
                "square-root Toeplitz",
                root / largest,
                1 / 0.965,
                f"{largest:.4f}",
                f"{root:.4f}",
            ),
        ]
    return rows


def pure_errors() -> list[Row]:
    rows = []
    for horizon, (_, bar) in HORIZONS.items():
        plan = counter(unit=Event(), horizon=horizon, epsilon=1, mechanism="tree").plan
        steps = np.arange(1, horizon + 1)
        bits = sum((steps >> level & 1).sum() for level in range(21)) / horizon
        binary = horizon.bit_length() * math.sqrt(2 * float(bits))
        what = f"epsilon 1, T = 2^{horizon.bit_length() - 1}"
        error = plan.root_mean_square
        rows.append(Row(f"{what}: error", "the bar", bar / error, 1.0, f"{error:.2f}", f"{bar}"))
        rows.append(Row(f"{what}: error", "binary tree", binary / error, None, f"{error:.2f}", f"{binary:.1f}"))
    assert binary_deviation(7) == math.sqrt(3)
    return rows


def planning_and_speed() -> list[Row]:
    slowest = 0.0
    for horizon in (1000, 1 << 16, 1 << 20, 1 << 32):
        start = time.process_time()
        design(horizon, 8)
        slowest = max(slowest, time.process_time() - start)
    rows = [Row("planning, 8 buffers, slowest of four horizons", "2 s", 2 / slowest, 1.0, f"{slowest:.2f} s", "2 s")]
    plan = counter(unit=Event(), horizon=1 << 20, rho=0.5).plan
    state, size = begin(plan).inner, 1 << 14

    def steps() -> None:
        inner, tape = state, new_tape(plan, lambda _: noise.secure())
        for _ in range(size):
            _, inner = plan.mechanism.step(inner, 3, tape)

    mine = best_cpu([steps], repeats=5)[0] / size
    rows.append(Row("scalar step, with data and exact secure noise", "-", 1.0, None, f"{mine * 1e6:.2f} us", ""))
    counts, lifting = np.full(1 << 16, 3), plan.mechanism._lifting  # noqa: SLF001  (the recursion by itself)
    drawn = new_tape(plan, lambda _: noise.secure()).block(0)

    def chunk() -> None:
        plan.mechanism.chunk(state, counts, new_tape(plan, lambda _: noise.secure()))

    def recursion() -> None:
        lifting.block(drawn, state.total, state.buffers)

    whole, bare = best_cpu([chunk], repeats=5)[0] / counts.size, best_cpu([recursion], repeats=9)[0] / drawn.shape[0]
    rows.append(
        Row("chunks, noise recursion alone", "5 million a second", 0.2e-6 / bare, 1.0, f"{bare * 1e6:.3f} us", "")
    )
    try:
        measured = run(peer("jax-privacy==2.0.0"), JAX)
    except PeerUnavailable as reason:
        print(f"jax-privacy is left out: {reason}\n")
        return rows
    for what, own, theirs, bar in (
        ("scalar step", mine, measured["step"], 8.0),
        ("step in chunks, with data and exact secure noise", whole, measured["chunk"], 10.0),
        ("step in chunks, noise recursion alone", bare, measured["chunk"], None),
    ):
        rows.append(
            Row(what, "jax-privacy, 6 buffers", theirs / own, bar, f"{own * 1e6:.3f} us", f"{theirs * 1e6:.2f} us")
        )
    return rows


def memory() -> list[Row]:
    rows = []
    for name, asked, limit in (("buffers", {"rho": 0.5}, 10), ("tree", {"epsilon": 1}, 100)):
        most = max(counter(unit=Event(), horizon=1 << power, **asked).plan.memory for power in (10, 16, 20, 24))
        rows.append(Row(f"numbers of state, 2^10 to 2^24, {name}", "the bar", limit / most, 1.0, str(most), str(limit)))
    return rows


def false_negatives(runs: int = 100) -> list[Row]:
    """Zipf counts of a million records over 10,000 items, epsilon 0.1, 25 alarms, with the exact noise of alarms."""
    weights = 1 / np.arange(1, 10_001)
    counts = np.rint(1e6 * weights / weights.sum()).astype(int)
    made = alarm_noise(Budget(epsilon=0.1), alarms=25, moved=1, monotone=True)
    answers = Tape(Law("laplace", made.answer), counts.size, lambda _: noise.secure(), 1)
    level, missed, order_of = math.ceil((counts[24] + counts[25]) / 2), 0, np.random.default_rng()
    for repeat in range(runs):
        order = order_of.permutation(counts.size)
        noisy = counts[order] + answers.row(repeat).astype(np.int64)
        shift = int(Law("laplace", Fraction(made.threshold)).draw(1, 1, noise.secure())[0, 0])
        told = order[np.flatnonzero(noisy >= level + shift)[:25]]
        missed += 25 - int(np.sum(told < 25))
    rate = missed / (25 * runs)
    return [Row("alarms missed, Zipf, epsilon 0.1, 25 alarms", "the bar", 0.06 / rate, 1.0, f"{rate:.4f}", "0.06")]


def crashes(kills: int = KILLS) -> list[Row]:
    """A child is killed again and again; what left is compared with a stream that was never killed."""
    folder = Path(tempfile.mkdtemp(prefix="mosha-killed-"))
    whole = folder.with_name(folder.name + "-whole")
    horizon = 4 * kills
    killed.serving(folder, horizon).close()
    shutil.copytree(folder, whole)
    hits = killed.kill_until_done(folder, horizon=horizon, kills=kills, longest=0.06, finish=False)
    seen = killed.published(folder)
    killed.publish(whole, horizon, until=max(seen))
    truth = killed.published(whole)
    same = all(seen[step] == truth[step] for step in seen)
    book = Ledger(str(folder / "book.db"))
    paid = book.verify().ok and abs(book.account("door").spent - 0.5) < 1e-9
    told = f"{hits} kills, {max(seen)} steps, same: {same}, paid once: {paid}"
    for place in (folder, whole):
        shutil.rmtree(place, ignore_errors=True)
    return [Row("crash and replay", "a stream that lived", float(same and paid), 1.0, told, "")]
