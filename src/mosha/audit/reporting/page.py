"""Reports as one self-contained HTML page: no script, no font, no picture is loaded from anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Protocol

from mosha.audit.reporting.outcome import Outcome
from mosha.core.language import current_language, say

__all__ = ["finding_page", "page", "table"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #6a7482; --line: #d5dae1; --back: #fff; --good: #2f7d57;
  --bad: #b3312c; --weak: #8a6d1a; --claim: #2b62a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #9aa5b4; --line: #3a4350; --back: #171b21;
  --good: #6fbf97; --bad: #f07f78; --weak: #d9b95a; --claim: #7fb0ee; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
table { border-collapse: collapse; margin: .6rem 0; } td, th { border-bottom: 1px solid var(--line); text-align: left;
  padding: .25rem .9rem .25rem 0; vertical-align: top; } td.number { font-variant-numeric: tabular-nums; }
.consistent { color: var(--good); } .broken { color: var(--bad); } .no-power { color: var(--weak); }
.outcome { font-weight: 600; } code { overflow-wrap: anywhere; } small, figcaption { color: var(--soft); }
figure { margin: .8rem 0; } svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.frame { fill: none; stroke: var(--line); } .allowed { fill: var(--claim); opacity: .08; }
.claim { fill: none; stroke: var(--claim); stroke-width: 2; } .guess { stroke: var(--line); stroke-dasharray: 4 4; }
.seen { fill: none; stroke: var(--ink); stroke-width: 1.5; } .witness { fill: var(--bad); }
.within { fill: var(--good); } .over { fill: var(--bad); } .limit { stroke: var(--ink); stroke-width: 1.5; }
"""


class Finding(Protocol):
    """Anything with words and figures."""

    def to_dict(self) -> dict[str, object]:
        """The figures."""
        ...


def page(title: str, body: str) -> str:
    """One page of HTML around a body."""
    return (
        f'<!doctype html>\n<html lang="{current_language()}"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>\n{body}\n</body></html>"
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; numbers are written short, everything is escaped."""
    header = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{header}</tr></thead><tbody>{lines}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, Outcome):
        return f'<td class="outcome {str(value).replace(" ", "-")}">{escape(value.describe())}</td>'
    if isinstance(value, float):
        return f'<td class="number">{value:.4g}</td>'
    return f'<td class="number">{value:,}</td>' if type(value) is int else f"<td>{escape(str(value))}</td>"


def finding_page(finding: Finding) -> str:
    """A page for any finding: its words, and its figures in a table."""
    title = " ".join(re.sub(r"([A-Z])", r" \1", type(finding).__name__).split()).capitalize()
    words = "".join(f"<p>{escape(line)}</p>" for line in str(finding).splitlines())
    return page(title, words + table([say("audit.head_figure"), say("audit.head_value")], _figures(finding.to_dict())))


def _figures(plain: dict[str, object], prefix: str = "") -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for name, value in plain.items():
        label = f"{prefix}{name}".replace("_", " ")
        if isinstance(value, dict):
            rows += _figures(value, f"{prefix}{name}: ")
        elif isinstance(value, list):
            rows.append(
                (label, say("audit.entries", number=len(value)) if len(value) > 12 else ", ".join(map(str, value)))
            )
        else:
            rows.append((label, "" if value is None else value))
    return rows
