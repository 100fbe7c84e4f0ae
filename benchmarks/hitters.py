"""Popular texts without a list: who is found, against the prefix extending method of pure-ldp 1.2.0, and 10^7 reports.

The texts are those of a real web log (10,000 requests); people draw theirs from it.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks._peers import PeerUnavailable, peer, run
from benchmarks._rows import Row
from benchmarks.local import PURE
from mosha.local import HeavyHitters

__all__ = ["PIECES"]

LOG: Final = Path(os.environ.get("MOSHA_DATA", "data")) / "streams" / "apache_logs.gz"
_PEOPLE: Final = 1000  # the peer hashes every text there could be for every report
_RUNS: Final = 20
_POPULAR: Final = 10
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz/.-_"

PEM: Final = """
import json, sys, time
from pure_ldp.heavy_hitters import PEMClient, PEMServer
given = json.load(open(sys.argv[1]))
epsilon, bits, k = given["epsilon"], given["bits"], given["k"]
start = time.process_time()
client = PEMClient(epsilon, 5, bits, 5)
server = PEMServer(epsilon, 5, bits, 5)
for text in given["texts"]:
    server.aggregate(client.privatise(text))
middle = time.process_time()
found, counts = server.find_heavy_hitters(k=k)
print(json.dumps([list(found), [float(c) for c in counts], middle - start, time.process_time() - middle]))
"""


def _requests() -> list[str]:
    if not LOG.exists():
        raise PeerUnavailable("no web log here (MOSHA_DATA names the folder of data sets)")
    with gzip.open(LOG, "rt", encoding="utf-8", errors="replace") as lines:
        return [line.split()[6] for line in lines if len(line.split()) > 6]


def _draw(texts: list[str], people: int) -> list[str]:
    return [texts[i] for i in np.random.default_rng().integers(0, len(texts), people)]


def against_pure_ldp() -> list[Row]:
    """Three characters of 15 bits, the ten most popular of 1,000 people, epsilon 4; the peer cannot do more.

    Both are given the same texts of the same people, code texts alike (five bits a character, so neither is given the
    list of texts), may say ten, and are asked as often as gives the difference an error bar.
    """
    short = [text.lower()[1:4] for text in _requests()]
    survey = HeavyHitters(longest=3, alphabet=LETTERS, epsilon=4)
    python = peer(*PURE)
    ours, theirs, cpu = [], [], np.zeros(2)
    for _ in range(_RUNS):
        texts = _draw(short, _PEOPLE)
        truth = Counter(survey.prefixes.read(survey.prefixes.words_of(text)) for text in texts)
        best = {text for text, _ in truth.most_common(_POPULAR)}
        start = time.process_time()
        collector = survey.collector()
        collector.add(survey.reports(texts))
        found = survey.decode(collector.counters, collector.accepted, confidence=1e-9)
        cpu[0] += time.process_time() - start
        ours.append(len(best & set(found.values[:_POPULAR])) / _POPULAR)
        names, seconds = _ask_peer(python, survey, texts)
        cpu[1] += seconds
        theirs.append(len(best & set(names)) / _POPULAR)
    recall, other = float(np.mean(ours)), float(np.mean(theirs))
    error = 1.96 * float(np.std(np.subtract(ours, theirs), ddof=1)) / len(ours) ** 0.5
    what = f"ten most popular: found, of {len(ours)} times (difference within {error:.2f})"
    name, shown = "pure-ldp PEM", [f"{seconds / _RUNS:.2f} s" for seconds in cpu]
    return [
        Row(what, name, recall / max(other, 0.05), 1.0, f"{recall:.3f}", f"{other:.3f}"),
        Row("the same, CPU of devices and search", name, cpu[1] / cpu[0], 2.0, *shown),
    ]


def _ask_peer(python: Path, survey: HeavyHitters, texts: list[str]) -> tuple[list[object], float]:
    widths = survey.prefixes.widths
    coded = {
        text: "".join(f"{w:0{n}b}" for w, n in zip(survey.prefixes.words_of(text), widths, strict=True))
        for text in set(texts)
    }
    back = {code: survey.prefixes.read(survey.prefixes.words_of(text)) for text, code in coded.items()}
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump({"epsilon": 4, "bits": sum(widths), "k": _POPULAR, "texts": [coded[text] for text in texts]}, file)
        file.flush()
        names, _, made, searched = run(python, PEM, file.name)
    return [back.get(name) for name in names], made + searched


def ten_million() -> list[Row]:
    """Addresses of a web log by their first 24 bytes, 10^7 people, epsilon 4, in batches of half a million."""
    texts = [text.encode()[:24].decode("utf-8", "ignore") for text in _requests()]
    survey, truth = HeavyHitters(longest=24, epsilon=4), Counter[str]()
    collector = survey.collector()
    start = time.process_time()
    for _ in range(20):
        batch = _draw(texts, 500_000)
        truth.update(batch)
        collector.add(survey.reports(batch))
    middle = time.process_time()
    tracemalloc.start()
    found = collector.estimate()
    seconds, (_, memory) = time.process_time() - middle, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    spread = float(np.median(found.deviations))
    large = {text for text, count in truth.items() if count >= 8 * spread}
    recall = len(large & set(found.values)) / len(large)
    false = [value for value in found.values if value not in truth]
    errors = [abs(c - truth[v]) / d for v, c, d in zip(found.values, found.counts, found.deviations, strict=True)]
    inside = float(np.mean(np.array(errors) < 1.96))
    what = f"10^7 reports, {survey.levels} lengths"
    return [
        Row(f"{what}: made and counted", "bar 60 CPU s", 60 / (middle - start), 1.0, f"{middle - start:.1f} s", "60 s"),
        Row(f"{what}: searched", "bar 10 CPU s", 10 / seconds, 1.0, f"{seconds:.1f} s", "10 s"),
        Row(f"{what}: memory of the search", "bar 1 GB", 1e9 / memory, 1.0, f"{memory / 1e6:.0f} MB", "1 GB"),
        Row(f"{len(large)} texts of {8 * spread:.0f} people or more: found", "all", recall, 0.95, f"{recall:.3f}", "1"),
        Row(f"{len(found)} found, of them nobody has", "none", 1.0 - len(false), 1.0, str(len(false)), "0"),
        Row("counts within their 95% bars", "bar 0.85", inside / 0.85, 1.0, f"{inside:.2f}", "0.95"),
    ]


PIECES = {piece.__name__: piece for piece in (against_pure_ldp, ten_million)}
