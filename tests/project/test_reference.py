"""The glossary has each word once."""

import re
from typing import Any

from tests.project.pages import ROOT

GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"


def rows() -> list[Any]:
    """Each word of the glossary with its Chinese."""
    words = GLOSSARY.read_text(encoding="utf-8").split("## Words of arguments")[0]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in words.splitlines() if "|" in line]


def test_the_glossary_has_each_word_once_and_in_both_languages() -> None:
    entries = [row for row in rows() if row[0] not in {"word", "---"}]
    words = [word for row in entries for word in row[0].split(", ")]
    assert len(entries) > 40
    assert len(set(words)) == len(words)
    chinese = [row[2] for row in entries]
    assert len(set(chinese)) == len(chinese)
    assert all(re.search("[\u4e00-\u9fffε]", word) for word in chinese)
