"""The two READMEs are one: same code, same tables, same order."""

import re

import pytest

from tests.project.pages import ROOT, blocks

ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"


def test_the_code_blocks_are_equal_byte_for_byte():
    assert blocks(ENGLISH)
    assert [b[:2] for b in blocks(ENGLISH)] == [b[:2] for b in blocks(CHINESE)]


def test_the_structure_is_equal():
    shape = lambda page: [
        re.match(r"#+|\|", line)[0]
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.match(r"#+ |\|", line)
    ]
    assert shape(ENGLISH) == shape(CHINESE)


@pytest.mark.parametrize("page", [ENGLISH, CHINESE], ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (ROOT / target).exists(), target


def test_each_links_to_the_other():
    assert "README.zh-CN.md" in ENGLISH.read_text(encoding="utf-8")
    assert "(README.md)" in CHINESE.read_text(encoding="utf-8")
