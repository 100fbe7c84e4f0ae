"""The two READMEs are one: same code, same tables, same order."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.project.pages import ROOT, blocks

ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"


def test_the_code_blocks_are_equal_byte_for_byte() -> None:
    assert blocks(ENGLISH)
    assert [b[:2] for b in blocks(ENGLISH)] == [b[:2] for b in blocks(CHINESE)]


def test_the_structure_is_equal() -> None:
    shape = lambda page: [
        re.match(r"#+|\|", line)[0]
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r"#+ |\|", line)
    ]
    assert shape(ENGLISH) == shape(CHINESE)


@pytest.mark.parametrize("page", [ENGLISH, CHINESE], ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Any) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_each_links_to_the_other() -> None:
    assert "README.zh-CN.md" in ENGLISH.read_text(encoding="utf-8")
    assert "(README.md)" in CHINESE.read_text(encoding="utf-8")


def test_the_snippets_run_after_the_base_install(tmp_path: Path) -> None:
    """Without any extra: packages that only extras bring are blocked."""
    absent = ["pandas", "pyarrow", "polars", "numba", "matplotlib", "torch", "psycopg", "pyspark", "altair"]
    code = "\n".join(block.text for block in blocks(ENGLISH) if block.language == "python")
    begin = f"import sys\nfor name in {absent}:\n    sys.modules[name] = None\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", begin + code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Visits by ward" in done.stdout
