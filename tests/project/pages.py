"""The pages that people read, and the fenced blocks in them."""

import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^( *)(`{3,})(.*?)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def every_page() -> list[Any]:
    """All Markdown pages of the project that speak to users."""
    top = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    return [page for page in [*top, *docs_pages()] if page.exists()]


def docs_pages() -> list[Any]:
    """The pages of the documentation; those in Chinese have the same code and are compared with these."""
    return [page for page in sorted((ROOT / "docs").rglob("*.md")) if not page.name.endswith(".zh.md")]


def blocks(page: Any) -> Any:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        indent, _, information, body = match.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        language = information.split()[0] if information.split() else ""
        found.append(Block(language, body, text[: match.start()].count("\n") + 2))
    return found


def name(page: Any) -> str:
    return str(page.relative_to(ROOT))
