"""Streams: errors against lower bounds and trees, planning, throughput, memory, alarms."""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
from scipy.signal import lfilter

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row, best_cpu
from mosha import Ledger, Reading, noise
from mosha.core.budget import Budget
from mosha.streams import Batches, counter
from mosha.streams.alarms import alarm_noise
from mosha.streams.noise.blt import design
from mosha.streams.noise.toeplitz import lower_bound, root_coefficients
from mosha.streams.service.state_text import to_plain
from mosha.streams.stream import begin, new_tape
from tests.streams import missed

HORIZONS: Final = {1 << 10: (1.03, 13.1), 1 << 16: (1.02, 24.8), 1 << 20: (1.015, 33.9)}

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
def scanned(state, drawn):
    return jax.lax.scan(lambda state, z: matrix.multiply_next(z, state)[::-1], state, drawn)
def least(work, repeats):
    found = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        work()[1].block_until_ready()
        found = min(found, (time.process_time() - start) / count)
    return found
drawn = jax.random.normal(key, (count,))
move = jax.jit(lambda key, state: scanned(state, jax.random.normal(key, (count,))))
bare = jax.jit(scanned)
move(key, state), bare(state, drawn)
told = {"step": best, "chunk": least(lambda: move(key, state), 5), "bare": least(lambda: bare(state, drawn), 5)}
told["traced"] = least(lambda: scanned(state, jax.random.normal(key, (count,))), 3)
print(json.dumps(told))
"""


def exact_errors(horizon: int) -> tuple[float, float]:
    """Root mean square and largest deviation of the planned stream at rho = 1/2, from its exact covariance."""
    plan = counter(unit=Reading(), horizon=horizon, rho=0.5).plan
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
        plan = counter(unit=Reading(), horizon=horizon, epsilon=1, mechanism="tree").plan
        steps = np.arange(1, horizon + 1)
        bits = sum((steps >> level & 1).sum() for level in range(21)) / horizon
        binary = horizon.bit_length() * math.sqrt(2 * float(bits))
        what = f"epsilon 1, T = 2^{horizon.bit_length() - 1}"
        error = plan.root_mean_square
        rows.append(Row(f"{what}: error", "the bar", bar / error, 1.0, f"{error:.2f}", f"{bar}"))
        rows.append(Row(f"{what}: error", "binary tree", binary / error, None, f"{error:.2f}", f"{binary:.1f}"))
    return rows


def planning() -> list[Row]:
    slowest = 0.0
    for horizon in (1000, 1 << 16, 1 << 20, 1 << 32):
        start = time.process_time()
        design(horizon, 8)
        slowest = max(slowest, time.process_time() - start)
    return [Row("planning, 8 buffers, slowest of four horizons", "2 s", 2 / slowest, 1.0, f"{slowest:.2f} s", "2 s")]


def speed() -> list[Row]:
    """CPU seconds a step: one by one, in chunks of 2^16 through an account, and the parts of a chunk.

    The bar of ten times was set against 2.8 us a step of jax-privacy. Near that is its scan as it is called, which is
    traced and compiled anew for every chunk. Compiled ahead of time the scan takes 0.05 us a step, noise included; ten
    times that would be 5 ns a step. A word of AES alone takes 2 ns here, a draw of exact noise 16 ns or more: noise
    that is exact and secure cannot get there. jax-privacy's is floats from a counter of 64 bits, without data or
    ledger. Both figures are shown.
    """
    stream = counter(unit=Reading(), horizon=1 << 24, rho=0.5)
    plan, size = stream.plan, 1 << 14

    def steps() -> None:
        inner, tape = begin(plan).inner, new_tape(plan, lambda _: noise.secure())
        for _ in range(size):
            _, inner = plan.mechanism.step(inner, 3, tape)

    scalar = best_cpu([steps], repeats=5)[0] / size
    chunk, rows = Batches.at(np.ones(3 << 16), steps=np.repeat(np.arange(1 << 16), 3), count=1 << 16), []
    lifting, start = plan.mechanism._lifting, begin(plan).inner  # noqa: SLF001  (the recursion by itself)
    drawn = plan.law.draw(1 << 16, 1, noise.secure())
    with tempfile.TemporaryDirectory(prefix="mosha-streams-") as folder:
        account = Ledger(str(Path(folder) / "book.db")).account("door", unit=Reading(), rho=1.0)
        with account.open(stream) as run_:
            run_.step(chunk)
            work = [
                lambda: run_.step(chunk),
                lambda: lifting.block(
                    plan.law.draw(1 << 16, 1, noise.secure()), start.total, start.buffers, hurry=True
                ),
                lambda: lifting.block(drawn, start.total, start.buffers, hurry=True),
            ]
            whole, noisy, bare = (cpu / chunk.count for cpu in best_cpu(work, repeats=9))
    rows.append(
        Row(
            "chunks through an account: rows, ledger, noise",
            "5 million a second",
            0.2e-6 / whole,
            1.0,
            _us(whole),
            "0.2 us",
        )
    )
    try:
        theirs = run(peer("jax-privacy==2.0.0"), JAX)
    except PeerUnavailable as reason:
        print(f"jax-privacy is left out: {reason}\n")
        return rows
    for what, ours, other, name, bar in (
        ("scalar step, with data and exact secure noise", scalar, "step", "compiled step", 8.0),
        ("chunks through an account", whole, "traced", "scan, as it is called", 10.0),
        ("chunks through an account", whole, "chunk", "scan, compiled ahead", 10.0),
        ("chunks: exact secure noise and recursion", noisy, "chunk", "scan, compiled ahead", None),
        ("chunks: recursion alone", bare, "bare", "scan, compiled ahead", None),
    ):
        rows.append(Row(what, f"jax-privacy, {name}", theirs[other] / ours, bar, _us(ours), _us(theirs[other])))
    return rows


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.3f} us"


def memory() -> list[Row]:
    """Numbers and bytes of state, and memory of the process, from 2^10 to 2^24 steps that are really taken."""
    rows = []
    for name, asked, limit in (("buffers", {"rho": 0.5}, 10), ("tree", {"epsilon": 1}, 100)):
        most = max(counter(unit=Reading(), horizon=1 << power, **asked).plan.memory for power in (10, 16, 20, 24))
        rows.append(Row(f"numbers of state, 2^10 to 2^24, {name}", "the bar", limit / most, 1.0, str(most), str(limit)))
    stream = counter(unit=Reading(), horizon=1 << 24, rho=0.5)
    state, rng, seen = stream.init(), noise.secure(), {}
    while state.time < 1 << 24:
        together = min(1 << 16, max(1 << 10, state.time))
        _, state = stream.step(state, Batches.at(np.zeros(0), steps=np.zeros(0, int), count=together), None, rng)
        if state.time & (state.time - 1) == 0 and state.time.bit_length() % 2:
            seen[state.time] = (len(json.dumps(to_plain(state))), _resident())
    first, last = seen[1 << 18], seen[1 << 24]
    text = max(size for size, _ in seen.values())
    rows.append(Row("bytes of state, 2^10 to 2^24 steps, buffers", "1 kB", 1024 / text, 1.0, f"{text} B", "1024 B"))
    grown = last[1] / first[1]
    told = f"{first[1] >> 20} MB", f"{last[1] >> 20} MB"
    rows.append(Row("process at 2^18 steps over 2^24, buffers", "constant", 1 / grown, 0.95, *told))
    return [*rows, *_tree_memory()]


def _tree_memory() -> list[Row]:
    """The nodes that a tree really holds, over the first 2^18 steps of 2^24."""
    plan = counter(unit=Reading(), horizon=1 << 24, epsilon=1, mechanism="tree").plan
    inner, tape, most = begin(plan).inner, new_tape(plan, lambda _: noise.secure()), 0
    for step in range(1 << 18):
        _, inner = plan.mechanism.step(inner, 1, tape)
        if step % 31 == 0:
            most = max(most, sum(map(len, inner.nodes)) + len(inner.digits) + 3)
    return [Row("numbers that a tree held in 2^18 steps of 2^24", "the bar", 100 / most, 1.0, str(most), "100")]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def false_negatives(runs: int = 200) -> list[Row]:
    """Zipf counts of a million records over 10,000 items, epsilon 0.1, 25 alarms: the exact mean, and runs."""
    made = alarm_noise(Budget(epsilon=0.1), alarms=25, moved=1, monotone=True)
    mean, lost, order_of = missed.missed(missed.one_sided, made), 0, np.random.default_rng()
    for _ in range(runs):
        order = order_of.permutation(missed.ITEMS)
        noisy = missed.COUNTS[order] + noise.geometric(made.answer, missed.ITEMS)
        level = missed.LEVEL + made.offset + noise.geometric(made.threshold)
        lost += 25 - int(np.sum(order[np.flatnonzero(noisy >= level)[:25]] < 25))
    rate, both = lost / (25 * runs), missed.missed(missed.two_sided, made)
    what = "alarms missed, Zipf, epsilon 0.1, 25 alarms"
    return [
        Row(f"{what}: the exact mean", "the bar", 0.06 / mean, 1.0, f"{mean:.4f}", "0.06"),
        Row(f"{what}: {runs} runs", "noise to both sides", both / rate, None, f"{rate:.4f}", f"{both:.4f}"),
    ]


PIECES = {piece.__name__: piece for piece in (gaussian_errors, pure_errors, planning, speed, memory, false_negatives)}
