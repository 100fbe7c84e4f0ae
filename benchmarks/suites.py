"""How many questions of other libraries are answered, word for word: SmartNoise's devices and PUMS, and Qrlew's.

The texts are read from the public repositories, which are cloned when first asked for (or stand, cloned before, as
`smartnoise-sdk` and `qrlew` in the folder that `MOSHA_SUITES` names); nothing of them is kept here. They run on made-up
data of their schemas with the ranges that their metadata declare. Of Qrlew's integration tests, on all engines, those
that aggregate are asked, each once. A question counts as answered if it gives a release: 31 of 33, and 28 of 30.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

import mosha
from benchmarks._peers import PeerUnavailable
from benchmarks._rows import Row
from mosha.sql import query

SIZE: Final = 2000
ADDRESSES: Final = {
    "smartnoise-sdk": "https://github.com/opendp/smartnoise-sdk",
    "qrlew": "https://github.com/Qrlew/qrlew",
}
DEVICES: Final = ["run/run.sql", "compare/compare.sql", "validate/valid.sql", "validate_pums/validate_pums.sql"]
BARS: Final = {"SmartNoise": 31, "Qrlew": 28}
AGGREGATES: Final = re.compile(r"\b(count|sum|avg|max|min)\s*\(", re.IGNORECASE)
RANGES: Final = {
    "age": (0, 100), "income": (0, 500_000), "Temperature": (25, 65), "Crashes": (0, 10),
    "a": (0, 10), "b": (0, 10), "d": (0, 10), "x": (0, 100),
}  # fmt: skip


def read_text(repository: str, path: str) -> str:
    """A file of a public repository, as its newest commit has it."""
    folder = os.environ.get("MOSHA_SUITES")
    home = Path(folder or Path(__file__).resolve().parent.parent / ".bench") / repository
    if not home.exists() and folder is None:
        _run(["git", "clone", "--quiet", "--bare", "--depth", "1", ADDRESSES[repository], str(home)])
    return _run(["git", "-C", str(home), "show", f"HEAD:{path}"])


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PeerUnavailable((done.stderr.strip().splitlines() or ["no reason given"])[-1])
    return done.stdout


def read_smartnoise() -> list[str]:
    """The questions of the devices and of PUMS."""
    found = []
    for name in DEVICES:
        lines = read_text("smartnoise-sdk", f"sql/tests/query/queries/{name}").splitlines()
        text = "\n".join(line for line in lines if not line.startswith("--"))
        found += [" ".join(one.split()) for one in text.split(";") if one.strip()]
    return found


def read_qrlew() -> list[str]:
    """The questions of the integration tests that aggregate."""
    text = read_text("qrlew", "tests/integration.rs")
    found: dict[str, None] = {}
    for listed in re.findall(r"(?s)const \w*QUERIES\w*: &\[&str\] = &\[(.*?)\n\];", text):
        for one in re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"(?m)^\s*//.*$", "", listed)):
            if AGGREGATES.search(one):
                found.setdefault(" ".join(one.split()).rstrip(";"))
    return list(found)


def make_suite() -> dict[str, Any]:
    """Tables of their schemas: devices and people have two rows each, Qrlew's second table is public."""
    g = random.Random(11)
    units = {name: mosha.Person(name, at_most=2) for name in ("pid", "DeviceID")}
    accounts = {
        name: mosha.Ledger.memory().account(name, unit=unit, epsilon=9.0, delta=1e-3) for name, unit in units.items()
    }

    def protect(person: str, **columns: Any) -> Any:
        made = {name: [make() for _ in range(SIZE)] for name, make in columns.items()}
        table = pa.table({person: [i // 2 for i in range(SIZE)]} | made)
        return mosha.protect(table, unit=units[person], account=accounts[person])

    draw = g.randrange
    public = {"x": list(range(10)), "y": ["ab"] * 10, "z": ["Foo", "Bar"] * 5}
    return {
        "PUMS.PUMS": protect(
            "pid", age=lambda: draw(18, 90), sex=lambda: draw(2), educ=lambda: draw(1, 17),
            income=lambda: 1000.0 * draw(0, 500), married=lambda: g.random() < 0.5,
        ),
        "Telemetry.Crashes": protect(
            "DeviceID", Refurbished=lambda: g.random() < 0.3, Temperature=lambda: 25 + 40 * g.random(),
            Building=lambda: g.choice("ABC"), Region=lambda: g.choice(["LATAM", "EMEA"]), Crashes=lambda: draw(11),
        ),
        "Telemetry.Census": protect("DeviceID", OEM=lambda: g.choice("AB"), Disk=lambda: draw(100, 10_000)),
        "Telemetry.Rollouts": protect("DeviceID", RolloutID=lambda: draw(4), TrialGroup=lambda: draw(2)),
        "table_1": protect(
            "pid", a=lambda: 10 * g.random(), b=g.random, c=lambda: draw(3), d=lambda: draw(10)
        ),
        "table_2": mosha.tables.public_table(pa.table(public)),
        "people_2": protect("pid", x=lambda: draw(100), y=lambda: "ab", z=lambda: g.choice(["Foo", "Bar"])),
    }  # fmt: skip


def ask(suite: dict[str, Any], sql: str) -> str | None:
    """None where a question is answered, else why it is not."""
    tables = dict(suite)
    if "table_1" not in sql:
        tables["table_2"] = tables["people_2"]
    read = [table for name, table in tables.items() if re.search(rf"\b{re.escape(name)}\b", sql)]
    known = {column for table in read if hasattr(table, "account") for column in table.schema}
    ranges = {column: ends for column, ends in RANGES.items() if column in known}
    try:
        query(sql, tables=tables, ranges=ranges, epsilon=0.05, delta=1e-6)
    except mosha.errors.MoshaError as reason:
        return str(reason)
    return None


def main() -> list[Row]:
    rows = []
    suite = make_suite()
    for name, read in ("SmartNoise", read_smartnoise), ("Qrlew", read_qrlew):
        try:
            texts = read()
        except PeerUnavailable as reason:
            print(f"left out: {name}: {reason}")
            continue
        reasons = [ask(suite, text) for text in texts]
        for text, why in zip(texts, reasons, strict=True):
            if why is not None:
                print(f"not answered: {text}\n    {why}")
        answered = reasons.count(None)
        bar = BARS[name]
        rows.append(Row("questions answered", name, answered / bar, 1.0, f"{answered}", f"{bar} of {len(texts)}"))
    return rows
