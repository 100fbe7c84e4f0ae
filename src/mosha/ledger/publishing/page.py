"""A statement as one HTML page: no script, no picture, no font and no style from anywhere else.

It is read on screens of any width, light or dark, and printed. Every text of the book is escaped; a content security
policy inside the page forbids whatever is not in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from mosha._version import __version__
from mosha.core.event import from_dict
from mosha.core.guarantee import Approx, Guarantee, Pure
from mosha.core.language import say, translate
from mosha.core.release import write_left
from mosha.ledger.publishing.words import Words, words_in
from mosha.ledger.terms.moment import as_text
from mosha.ledger.terms.policy import epsilon_at

if TYPE_CHECKING:
    from mosha.ledger.checking.replay import Balance
    from mosha.ledger.publishing.facts import ReleaseLine, StatementFacts

__all__ = ["write_page"]

PRIOR = 0.01
CONVERSION_DELTA = 1e-6
_TINY = re.compile(r"(?<=\d)e-0(\d)\b")
STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6675; --line: #d9dee6; --paper: #fff; --panel: #f5f7fa;
  --fill: #2f6f8f; --warn: #8a5a00; --warn-panel: #fff6e0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --dim: #9aa6b5; --line: #333d4a; --paper: #14191f;
  --panel: #1c232c; --fill: #6fb3d2; --warn: #ffcf70; --warn-panel: #2d2614; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); line-height: 1.55; font-size: 16px;
  font-family: system-ui, -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC",
  "WenQuanYi Micro Hei", sans-serif; }
main { max-width: 64rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
p { margin: .4rem 0; max-width: 44rem; }
.dim { color: var(--dim); }
.promise { background: var(--panel); border-left: .3rem solid var(--fill); padding: 1rem 1.25rem; margin-top: 1.5rem; }
.promise strong { font-size: 1.35rem; display: block; }
.warnings { background: var(--warn-panel); border-left: .3rem solid var(--warn); padding: .6rem 1.25rem; }
.warnings li { margin: .3rem 0; }
.gauge { height: .7rem; border: 1px solid var(--line); background: var(--panel); border-radius: .35rem;
  overflow: hidden; max-width: 44rem; }
.gauge span { display: block; height: 100%; background: var(--fill); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .9rem .4rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--dim); font-weight: 600; white-space: nowrap; }
td { overflow-wrap: break-word; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font-family: ui-monospace, "SFMono-Regular", Consolas, monospace; font-size: .88em;
  overflow-wrap: anywhere; }
pre { background: var(--panel); padding: .7rem .9rem; white-space: pre-wrap; }
footer { margin-top: 2.5rem; color: var(--dim); font-size: .88rem; }
@media (max-width: 34rem) { main { padding: 1.2rem .9rem 2rem; } h1 { font-size: 1.4rem; }
  thead { display: none; } tr { display: block; border-bottom: 1px solid var(--line); padding: .45rem 0; }
  th, td { display: block; border: 0; padding: .1rem 0; white-space: normal; }
  td[data-label], td.number { text-align: left; display: grid; grid-template-columns: 6.5em 1fr; column-gap: .6em; }
  td[data-label]::before { content: attr(data-label); color: var(--dim); } td:empty { display: none; } }
@media print { :root { --ink: #000; --dim: #444; --line: #bbb; --paper: #fff; --panel: #fff; --fill: #444; --warn: #444;
  --warn-panel: #fff; color-scheme: light; } main { max-width: none; padding: 0; } body { font-size: 10.5pt; }
  tr, .promise, .warnings { break-inside: avoid; } h2 { break-after: avoid; }
  .gauge span { print-color-adjust: exact; } }
"""


def write_page(statement: StatementFacts, lang: str) -> str:
    """The page in one of the languages."""
    words = words_in(lang)
    title = f"{words['title']}{words['colon']}{statement.account}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="dim">{escape(_moment(statement.at))}</p>',
        _promise(statement, words),
        _warnings(statement, words),
        _render_spent(statement, words),
        _section(words["facts"], _facts(statement, words)),
        _accounts(statement.accounts, words),
        _section(words["releases"], _releases(statement, words)),
        _book(statement, words),
        _section(words["limits"], f"<p>{escape(words['limits_say'])}</p>"),
        f"<footer>{escape(words['made'])} {escape(__version__)}</footer>",
    ]
    body = "\n".join(part for part in parts if part)
    tag = "zh-Hans" if lang == "zh" else "en"
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
        f"</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _section(heading: str, body: str) -> str:
    return f"<section><h2>{escape(heading)}</h2>{body}</section>"


def _promise(statement: StatementFacts, words: Words) -> str:
    terms, promise = statement.balance.terms, statement.promise
    epsilon, delta = _odds(promise)
    note = "" if isinstance(promise, Pure | Approx) else f" ({words['converted']})"
    sentences = [words.belief(_percent(PRIOR), _percent(_belief_after(epsilon)), _factor(epsilon)) + note]
    sentences += [_tidy(words.failing(delta))] if delta else []
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f'<section class="promise"><h2 style="margin-top:0">{escape(words["promised"])}</h2>'
        f"<strong>{escape(_tidy(words.promise(promise)))}</strong><p>{escape(words['together'])}</p>"
        f"<p>{escape(words['hidden'] + words['colon'] + words.describe_hidden(terms.unit))}</p>{paragraphs}</section>"
    )


def _odds(promise: Guarantee) -> tuple[float, float]:
    if isinstance(promise, Pure):
        return promise.epsilon, 0.0
    if isinstance(promise, Approx):
        return promise.epsilon, promise.delta
    return epsilon_at(promise, CONVERSION_DELTA), CONVERSION_DELTA


def _belief_after(epsilon: float) -> float:
    """The belief that a prior of one in a hundred can grow to; of large epsilons it is one."""
    return PRIOR / (PRIOR + (1 - PRIOR) * math.exp(-epsilon))


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):,.3g}" if epsilon < math.log(1e4) else f"e^{epsilon:.4g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%" if share < 0.9995 else ">99.9%"


def _warnings(statement: StatementFacts, words: Words) -> str:
    if not statement.weaknesses:
        return ""
    items = "".join(f"<li>{escape(_tidy(weakness.render(words.lang)))}</li>" for weakness in statement.weaknesses)
    return f'<section><h2>{escape(words["warnings"])}</h2><div class="warnings"><ul>{items}</ul></div></section>'


def _render_spent(statement: StatementFacts, words: Words) -> str:
    rule = statement.balance.terms.rule
    amount, limit = rule.amount_of(statement.balance.spent, statement.balance.way), rule.amount_limit
    share = min(amount / limit, 1.0)
    said = words.describe_spent(f"{100 * share:.1f}%", rule.measure, f"{amount:.6g}", f"{limit:.6g}")
    filled = f'<span style="width:{100 * share:.2f}%"></span>'
    bar = f'<div class="gauge" role="img" aria-label="{escape(said)}">{filled}</div>'
    rest = write_left(statement.left, limit, rule.measure, statement.more, digits=6)
    left = words.describe_left(rule.measure, rest, statement.more, statement.left_as)
    return _section(words["spent"], f"{bar}<p>{escape(said)}</p><p>{escape(words['left'] + words['colon'] + left)}</p>")


def _facts(statement: StatementFacts, words: Words) -> str:
    terms = statement.balance.terms
    facts = []
    if terms.unit.of not in (None, statement.account):
        facts.append((words["population"], f"{terms.unit.of}{words['colon']}{words['population_pays']}"))
    if terms.size is not None:
        facts.append((words["size"], f"{terms.size:,}"))
    facts.append((words["rule"], translate(terms.rule.describe(statement.balance.way), words.lang)))
    if terms.disjoint_blocks:
        facts.append((words["blocks"], words["disjoint"]))
    facts.append((words["means"], _tidy(words.promise(statement.spent))))
    if statement.today is not None:
        facts.append((words["today"], _tidy(words.promise(statement.today))))
    facts.append((words["state"], _state(statement.balance, words)))
    if terms.purpose:
        facts.append((words["purpose"], terms.purpose))
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(said)}</td></tr>' for name, said in facts)
    return f'<div class="wide"><table class="facts"><tbody>{rows}</tbody></table></div>'


def _state(balance: Balance, words: Words) -> str:
    if balance.retired:
        return say("ledger.state_retired", words.lang)
    ends = balance.terms.expires
    if ends is None:
        return say("ledger.state_open", words.lang)
    return say("ledger.state_granted", words.lang, until=_moment(as_text(ends)))


def _accounts(accounts: Iterable[Balance], words: Words) -> str:
    rows = [
        (
            balance.terms.name,
            _tidy(words.promise(balance.terms.rule.promise())),
            f"{balance.terms.rule.amount_of(balance.spent, balance.way):.6g} / {balance.terms.rule.amount_limit:.6g}",
            _state(balance, words),
            balance.terms.purpose or "",
        )
        for balance in accounts
    ]
    if not rows:
        return ""
    head = [words[name] for name in ("account", "promise", "spent", "state", "purpose")]
    return _section(words["accounts"], _table(head, rows))


def _releases(statement: StatementFacts, words: Words) -> str:
    """Payments for the same thing that met the same fate are one line."""
    groups: dict[tuple[str, str, str], list[ReleaseLine]] = {}
    for line in statement.releases:
        groups.setdefault((line.name, repr(from_dict(line.event)), line.state), []).append(line)
    if not groups:
        return f"<p>{escape(words['none'])}</p>"
    rows = [
        (
            name,
            event,
            translate(state, words.lang),
            f"{sum(line.count for line in lines):,}",
            _span([lines[0].at[:10], max(line.until for line in lines)[:10]]),
            _cost(lines),
            _rows(lines),
        )
        for (name, event, state), lines in groups.items()
    ]
    head = [words[name] for name in ("what", "event", "state", "times", "dates", "cost", "rows")]
    return _table(head, rows, numbers=(3, 4, 5), codes=(1, 6))


def _rows(lines: list[ReleaseLine]) -> str:
    """The one row of a single release, or the first and the last of many."""
    first, last = lines[0].entry, lines[-1].last
    return first if first == last else f"{first.partition('-')[0]} … {last.partition('-')[0]}"


def _span(values: list[str]) -> str:
    return values[0] if values[0] == values[-1] else f"{values[0]} … {values[-1]}"


def _cost(lines: list[ReleaseLine]) -> str:
    amount, delta = math.fsum(line.cost for line in lines), math.fsum(line.delta for line in lines)
    return _tidy(f"{amount:.4g}" + (f", δ {delta:.2g}" if delta else ""))


def _book(statement: StatementFacts, words: Words) -> str:
    said = escape(f"{words['book_says']} {_moment(statement.at)}{words['colon'].strip()}")
    command = f"mosha ledger verify BOOK --head {statement.head}"
    return _section(
        words["book"],
        f"<p>{said}</p><pre>{escape(str(statement.head))}</pre><p>{escape(words['check'])}</p>"
        f"<pre>{escape(command)}</pre>",
    )


def _table(
    head: list[str], rows: Sequence[tuple[str, ...]], *, numbers: tuple[int, ...] = (), codes: tuple[int, ...] = ()
) -> str:
    def cell(place: int, text: str) -> str:
        shown = f"<code>{escape(text)}</code>" if place in codes else escape(text)
        return f'<td{_class(place, numbers)} data-label="{escape(head[place])}">{shown if text else ""}</td>'

    titles = "".join(f'<th scope="col"{_class(i, numbers)}>{escape(name)}</th>' for i, name in enumerate(head))
    body = "".join(f"<tr>{''.join(cell(i, text) for i, text in enumerate(row))}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _tidy(text: str) -> str:
    """1e-06 is 1e-6 to people."""
    return _TINY.sub(r"e-\1", text)


def _moment(text: str) -> str:
    """A time for people."""
    return f"{text[:10]} {text[11:19]} UTC"


def _class(place: int, numbers: tuple[int, ...]) -> str:
    return ' class="number"' if place in numbers else ""
