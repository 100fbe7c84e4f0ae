"""Tables of contents are whole: every page, and every sharp edge with its severity."""

import re
from typing import Any

import pytest

from tests.project.pages import ROOT, docs_pages


def test_every_page_is_in_the_table_of_contents_once() -> None:
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r"[:-] (\S+\.md)$", contents, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in docs_pages())


def read_edges(name: Any) -> tuple[Any, ...]:
    """Severity and title of every sharp edge: as its table lists them, and as its sections say."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\w+) \| \[(.+)\]\(#[\w-]+\) \|$", text, re.MULTILINE)
    sections = re.findall(r"^## (.+?)(?: \{#[\w-]+\})?\n\*\*(\w+)[.。]?\*\*", text, re.MULTILINE)
    assert len(sections) == len(re.findall(r"^## ", text, re.MULTILINE))
    return listed, [(severity.lower(), title) for title, severity in sections]


@pytest.mark.parametrize(("name", "order"), [("sharp-edges.md", "high medium low"), ("sharp-edges.zh.md", "高 中 低")])
def test_every_sharp_edge_is_listed_with_its_severity_the_most_dangerous_first(name: str, order: str) -> None:
    """Three of the high ones, among them line breaks in CSV files, stood in no table."""
    listed, sections = read_edges(name)
    assert listed == sections
    assert [severity for severity, _ in listed] == sorted((s for s, _ in listed), key=order.split().index)


def test_both_languages_have_the_same_edges() -> None:
    english, chinese = (read_edges(name)[0] for name in ("sharp-edges.md", "sharp-edges.zh.md"))
    same = dict(zip(["高", "中", "低"], ["high", "medium", "low"], strict=True))
    assert [severity for severity, _ in english] == [same[severity] for severity, _ in chinese]
