"""The glossary has each word once, and names arguments that there are."""

import inspect
import re
from typing import Any

from tests.house import public
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


def named_arguments(page: str) -> list[str]:
    """The arguments that the last table of the glossary explains."""
    table = (
        (GLOSSARY.parent / page)
        .read_text(encoding="utf-8")
        .split("words-of-arguments" if "zh" in page else "## Words")[-1]
    )
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in re.findall(r"`(\w+)=", cell)]


def read_arguments(value: Any) -> list[str]:
    try:
        return list(inspect.signature(value).parameters)
    except ValueError:  # a class without arguments of its own
        return []


def test_arguments_of_the_glossary_are_arguments_of_the_library_and_the_same_in_both_languages() -> None:
    values = [value for module in public.facades().values() for _, value in public.objects(module)]
    used = {name for value in values for name in read_arguments(value)}
    named = named_arguments("glossary.md")
    assert len(named) > 25
    assert len(set(named) - {"unit"}) == len(named) - 2, "each once, but the unit of a picture"
    assert not set(named) - used
    assert named_arguments("glossary.zh.md") == named
