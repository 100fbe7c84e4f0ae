"""The table of contents names every page once."""

import re

from tests.project.pages import ROOT, docs_pages


def test_every_page_is_in_the_table_of_contents_once():
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r"[:-] (\S+\.md)$", contents, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in docs_pages())
