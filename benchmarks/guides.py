"""The code of other libraries on the page for people who come from them runs, each in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from benchmarks._peers import PeerUnavailable, peer
from benchmarks._rows import Row

HOW_TO = Path(__file__).resolve().parent.parent / "docs" / "how-to"
PAGE = HOW_TO / "from-other-libraries.md"
PEERS = {
    PAGE: {
        "OpenDP": ("opendp[polars]==0.16.0",),
        "Tumult Analytics": ("tmlt.analytics==0.21.0", "setuptools<81"),
        "SmartNoise SQL": ("smartnoise-sql", "setuptools<81"),
        "PipelineDP": ("pipeline-dp",),
        "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn==1.7.2", "pandas"),
    },
    HOW_TO / "learning-from-opacus.md": {"The same loop": ("torch==2.13.0", "opacus==1.6.0")},
    HOW_TO / "federated-from-flower.md": {"Flower's own differential privacy": ("flwr[simulation]==1.41.0",)},
}


def read_code(page: Path) -> dict[str, str]:
    """The code of other libraries on a page, by the heading above it."""
    found, heading = {}, ""
    for part in re.finditer(
        r"^## ([^\n]+)$|^```py\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        if part[1] is not None:
            heading = part[1]
        else:
            found[heading] = part[2]
    return found


def write_visits(folder: Path) -> None:
    """The made-up visits of the page."""
    made = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert made is not None
    exec(made[1].replace('Path("visits.csv")', f"Path({str(folder / 'visits.csv')!r})"), {})


def main() -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_visits(Path(folder))
        for page, peers in PEERS.items():
            code = read_code(page)
            assert set(code) == set(peers)  # type: ignore[call-overload]
            rows += [run_guide(name, requirements, code[name], folder) for name, requirements in peers.items()]  # type: ignore[attr-defined]
    return rows


def run_guide(name: str, requirements: tuple[str, ...], code: str, folder: str) -> Row:
    """Whether the code of one library runs to its end, and the last line that it prints."""
    try:
        python = peer(*requirements)
    except PeerUnavailable as reason:
        return Row(f"code of the page: {reason}", name, 0.0)
    script = Path(folder) / "guide.py"
    script.write_text(code, encoding="utf-8")
    words = [str(python), "-W", "ignore", str(script)]
    settings = os.environ | {"PYSPARK_PYTHON": str(python)}  # Spark's workers need the same environment
    done = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    told = (done.stdout.strip() or done.stderr.strip() or "nothing").splitlines()[-1]
    return Row("code of the page runs", name, float(done.returncode == 0), 1.0, theirs=told[:60])
