"""An account as an entry of the public registry of deployments of differential privacy.

The registry asks for what every reader of a promise should ask: who publishes, whose data, which variant, which unit,
how often, under which trust. A ledger knows about half of it and writes that down; the rest only a steward can say,
once for each data product (`details`). Nothing is null: what is not known is absent, and `missing_fields` names it.

The table below holds the names, kinds and levels of the fields, as the registry has them since July 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from mosha._version import __version__
from mosha.core.errors import InvalidParameter
from mosha.core.guarantee import Approx, Gaussian, Guarantee, Pure, ZeroConcentrated
from mosha.core.language import Phrase, phrase
from mosha.core.unit import Client, Edge, Example, Member, Node, Own, Person, Reading, Row, Unit, Window

if TYPE_CHECKING:
    from mosha.ledger.publishing.facts import StatementFacts

__all__ = ["SECTORS", "draft_entry", "find_problems", "make_entry", "missing_fields", "write_yaml"]

STATUSES = (
    "Converted",
    "Draft",
    "Pending",
    "Changes Required",
    "Approved",
    "Approved (Update Requested)",
    "Approved (Pending)",
)
_PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
# section -> field -> (from which tier on an entry has it, what it is); tier 4: never asked for
TEXT, LIST, DATE, PARAMETERS = "text", "list", "date", "parameters"
FIELDS: dict[str, dict[str, tuple[int, str | tuple[str, ...]]]] = {
    "basic": {
        "name": (1, TEXT),
        "data_curators": (1, LIST),
        "description": (1, TEXT),
        "intended_use": (1, TEXT),
        "data_product_type": (1, _PRODUCTS),
        "data_product_region": (1, TEXT),
        "publication_date": (1, DATE),
        "data_product_sector": (4, SECTORS),
    },
    "dp_variant": {
        "variant_name": (2, ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")),
        "data_domain": (3, TEXT),
        "unprotected_quantities": (3, TEXT),
    },
    "privacy_loss": {
        "privacy_unit": (2, TEXT),
        "privacy_unit_details": (3, TEXT),
        "privacy_parameters": (2, PARAMETERS),
        "privacy_parameters_details": (3, TEXT),
    },
    "deployment_model": {
        "model_name": (2, ("Local", "Central", "Shuffle", "Federated", "Varies")),
        "model_name_details": (4, TEXT),
        "actors": (3, TEXT),
        "release_type": (2, ("One release", "Many releases")),
        "release_type_details": (4, TEXT),
        "data_source_type": (2, ("Static", "Dynamic")),
        "data_source_type_details": (4, TEXT),
        "access_type": (2, ("Interactive", "Non-interactive")),
        "access_type_details": (3, TEXT),
    },
    "accounting": {"post_processing": (3, TEXT), "composition": (3, TEXT)},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": (3, TEXT),
        "mechanisms": (3, TEXT),
        "justification": (3, TEXT),
    },
    "administrative": {"sources": (4, TEXT), "notes": (4, TEXT), "registry_authors": (1, LIST)},
}
_MISREAD = re.compile(r"\\\\[^()]")  # two backslashes are for brackets alone: the registry refuses the rest
_VARIANTS = {Pure: "Pure DP", Approx: "Approximate DP", ZeroConcentrated: "Zero-concentrated DP", Gaussian: "Custom"}
_LEVELS: dict[type, str] = {
    Person: "User-level",
    Member: "User-level",
    Row: "Record-level",
    Reading: "Event-level",
    Window: "User-level within a window of time",
    Edge: "Edge-level",
    Node: "Node-level",
    Example: "Example-level",
    Client: "Client-level",
    Own: "User-level",
}


def draft_entry(statement: StatementFacts) -> dict[str, Any]:
    """What the ledger itself knows of the entry."""
    terms, promise = statement.balance.terms, statement.promise
    kinds = sorted({kind for line in statement.releases for kind in _kinds(line.event)})
    first = min((line.at for line in statement.releases), default=statement.at)
    sections: dict[str, dict[str, Any]] = {
        "basic": {"name": statement.account, "publication_date": first[:10]},
        "dp_variant": {
            "variant_name": _VARIANTS[type(promise)],
            "unprotected_quantities": "The number, the dates, the events and the prices of the releases.",
        },
        "privacy_loss": {
            "privacy_unit": _LEVELS.get(type(terms.unit), "Custom"),
            "privacy_unit_details": _sentence(f"Data sets are adjacent if {terms.unit.describe()}"),
            "privacy_parameters": _parameters(promise),
            "privacy_parameters_details": _explain_parameters(statement),
        },
        "deployment_model": {"model_name": _model(terms.unit, kinds)} | _releases(statement),
        "accounting": {"composition": _explain_composition(statement)},
        "implementation": {"mechanisms": _explain_mechanisms(kinds)},
        "administrative": {"notes": f"Head of the ledger: {statement.head}"},
    }
    if any(balance.terms.block for balance in statement.accounts):
        sections["deployment_model"]["data_source_type"] = "Dynamic"
    return {"status": "Draft", "deployment": sections}


def make_entry(
    draft: Mapping[str, Any], details: Mapping[str, object] | None, tier: int | None = None
) -> dict[str, Any]:
    """A draft with the steward's details, at the given tier or the highest one that its fields reach."""
    sections: dict[str, dict[str, Any]] = {name: dict(fields) for name, fields in draft["deployment"].items()}
    entry: dict[str, Any] = {"status": draft["status"], "deployment": sections}
    for name, value in dict(details or {}).items():
        section = next((section for section, fields in FIELDS.items() if name in fields), None)
        if section is not None:
            sections[section][name] = value.isoformat() if isinstance(value, date) else value
        elif name in ("url_slug", "status"):
            entry[name] = value
        else:
            raise InvalidParameter("ledger.registry_no_field", parameter=name)
    if tier not in (None, 1, 2, 3):
        raise InvalidParameter("ledger.registry_no_tier", parameter="tier")
    if missing := missing_fields(entry, tier or 1):
        raise InvalidParameter("ledger.registry_missing", parameter="details", tier=tier or 1, missing=missing)
    entry["tier"] = tier or max(level for level in (1, 2, 3) if not missing_fields(entry, level))
    entry.setdefault("url_slug", _make_slug(sections["basic"]))
    if problems := find_problems(entry):
        refused: Any = problems[0].fields.get("name")
        raise InvalidParameter("ledger.registry_refuses", parameter=refused, problem=problems[0])
    ordered = {name: entry[name] for name in ("url_slug", "status", "tier")}
    return ordered | {"deployment": {section: _in_order(sections[section], FIELDS[section]) for section in FIELDS}}


def missing_fields(entry: Mapping[str, Any], tier: int) -> list[str]:
    """The fields that an entry of this tier has and this one lacks."""
    return [
        name
        for section, fields in FIELDS.items()
        for name, (level, _) in fields.items()
        if level <= tier and name not in entry["deployment"].get(section, {})
    ]


def find_problems(entry: Mapping[str, Any]) -> list[Phrase]:
    """What the registry would refuse in an entry: missing, unknown and misshapen fields, in words."""
    problems = [
        phrase("ledger.field_missing", name=name)
        for name in ("url_slug", "status", "tier", "deployment")
        if name not in entry
    ]
    problems += [
        phrase("ledger.field_unknown", name=name)
        for name in sorted(set(entry) - {"url_slug", "status", "tier", "deployment"})
    ]
    if problems:
        return problems
    sections = {name: given for name, given in _read_mapping(entry["deployment"]).items() if isinstance(given, Mapping)}
    if entry["url_slug"] != (slug := _make_slug(sections.get("basic", {}))):
        problems.append(phrase("ledger.field_slug", slug=slug))
    if entry["status"] not in STATUSES:
        problems.append(phrase("ledger.field_one_of", name="status", options=STATUSES))
    if type(entry["tier"]) is not int or entry["tier"] not in (1, 2, 3):
        problems.append(phrase("ledger.field_one_of", name="tier", options=["1", "2", "3"]))
    misshapen = [name for name in _read_mapping(entry["deployment"]) if name not in sections]
    problems += [phrase("ledger.field_section", name=name) for name in misshapen]
    for section, given in sections.items():
        known = FIELDS.get(section, {})
        problems += [phrase("ledger.field_unknown", name=section)] if not known else []
        problems += [
            phrase("ledger.field_unknown", name=f"{section}.{name}") for name in given if known and name not in known
        ]
        problems += [
            fault
            for name, value in given.items()
            if name in known and (fault := _find_fault(f"{section}.{name}", known[name][1], value))
        ]
    missing = missing_fields({"deployment": sections}, 1)
    return problems + [phrase("ledger.field_missing", name=name) for name in missing]


def _read_mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _find_fault(name: str, kind: str | tuple[str, ...], value: Any) -> Phrase | None:
    """What is wrong with a value of this kind; None if it is right."""
    if isinstance(kind, tuple):
        return None if value in kind else phrase("ledger.field_one_of", name=name, options=kind)
    if kind == LIST:
        listed = isinstance(value, list) and value and all(isinstance(each, str) and each for each in value)
        return None if listed else phrase("ledger.field_list", name=name)
    if kind == PARAMETERS:
        plain = isinstance(value, dict) and set(value) <= {"epsilon", "delta", "rho"}
        numbers = plain and all(type(each) in (int, float) or part == "delta" for part, each in value.items())
        return None if numbers else phrase("ledger.field_numbers", name=name)
    if not isinstance(value, str) or not value:
        return phrase("ledger.field_text", name=name)
    if kind == DATE and not _is_date(value):
        return phrase("ledger.field_date", name=name)
    return phrase("ledger.field_latex", name=name) if _MISREAD.search(value) else None


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _parameters(promise: Guarantee) -> dict[str, float]:
    """The promise to twelve digits: an account keeps its limit to one part in 2**51."""
    said = {name: float(f"{value:.12g}") for name, value in promise.to_dict().items() if name != "guarantee"}
    return {} if isinstance(promise, Gaussian) else said


def _explain_parameters(statement: StatementFacts) -> str:
    terms, promise = statement.balance.terms, statement.promise
    limit = f"A limit on all releases together, kept by the {terms.rule.name} rule; spent so far: {statement.spent}."
    if not isinstance(promise, Gaussian):
        return limit
    return (
        f"Gaussian differential privacy with mu = {promise.mu:g}: on adjacent data sets, telling the outputs apart "
        f"is no easier than telling a normal distribution with mean 0 from one with mean {promise.mu:g}, both with "
        f"variance 1. {limit}"
    )


def _model(unit: Unit, kinds: list[str]) -> str:
    if "Shuffled" in kinds:
        return "Shuffle"
    return "Local" if isinstance(unit, Own) else "Federated" if isinstance(unit, Client) else "Central"


def _releases(statement: StatementFacts) -> dict[str, str]:
    many = sum(line.count for line in statement.releases) > 1
    said = {
        "release_type": "Many releases" if many else "One release",
        "release_type_details": "The limit holds for all releases, past and future; it is never reset.",
    }
    if not statement.accounts:
        return said
    shares = "; ".join(f"{b.terms.name}: {b.terms.rule.promise()}" for b in statement.accounts)
    apportioned = (
        f"The budget is shared among accounts beneath this one ({shares}), each of which is charged together with "
        "it. Collusion is allowed for: the limit holds for all of them together."
    )
    return said | {"access_type_details": apportioned}


def _explain_composition(statement: StatementFacts) -> str:
    terms = statement.balance.terms
    said = (
        f"{terms.rule.describe(statement.balance.way)} over releases that may be chosen adaptively (a privacy filter)"
    )
    if terms.disjoint_blocks or any(balance.terms.disjoint_blocks for balance in statement.accounts):
        said += "; blocks of data that were declared disjoint compose in parallel"
    return _sentence(said)


def _explain_mechanisms(kinds: list[str]) -> str:
    return (
        f"Mosha {__version__}, with the events: {', '.join(kinds) or 'none yet'}. Noise is drawn exactly, on integers "
        "and from the randomness of the operating system, so that floating-point numbers decide nothing; every "
        "release is charged in a hash-chained ledger before the data is read."
    )


def _kinds(event: object) -> set[str]:
    """The names of all events inside an event, but for the composition itself."""
    if isinstance(event, list):
        return set().union(*map(_kinds, event))
    if not isinstance(event, dict):
        return set()
    own = {event["kind"]} - {"Composed"} if "kind" in event else set()
    return own.union(*map(_kinds, event.values()))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _make_slug(basic: Mapping[str, object]) -> str:
    """The address of an entry: the registry makes it of the name, the curators and the year, and takes no other.

    >>> _make_slug({"name": "Stays (2026)", "data_curators": ["Hospital X", "City"], "publication_date": "2026-11-01"})
    'stays-2026--hospital-x-city-2026'
    """
    curators = basic.get("data_curators")
    names = [str(each) for each in curators] if isinstance(curators, list) else []
    parts = (str(basic.get("name", "")), "-".join(names), str(basic.get("publication_date", "")).split("-", 1)[0])
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


def _in_order(given: Mapping[str, object], fields: Mapping[str, object]) -> dict[str, Any]:
    return {name: given[name] for name in fields if name in given}


def write_yaml(entry: Mapping[str, object], indent: int = 0) -> str:
    r"""The entry as YAML: texts are quoted as in JSON, which YAML reads alike; the slug is plain, for it is searched.

    >>> write_yaml({"tier": 1, "names": ["Li", "Wang"], "basic": {"name": "Stays: 2026"}})
    'tier: 1\nnames:\n  - "Li"\n  - "Wang"\nbasic:\n  name: "Stays: 2026"\n'
    """
    lines, space = "", "  " * indent
    for name, value in entry.items():
        if isinstance(value, Mapping) and value:
            lines += f"{space}{name}:\n" + write_yaml(value, indent + 1)
        elif isinstance(value, list) and value:
            lines += f"{space}{name}:\n" + "".join(f"{space}  - {_quote(each)}\n" for each in value)
        else:
            is_plain = name == "url_slug" and isinstance(value, str) and re.fullmatch(r"[\w-]*[^\W\d_-][\w-]*", value)
            lines += f"{space}{name}: {value if is_plain else _quote(value)}\n"
    return lines


def _quote(value: object) -> str:
    if isinstance(value, float):
        return _plain_float(value)
    return json.dumps(value, ensure_ascii=False)


def _plain_float(value: float) -> str:
    """A number that YAML 1.1 takes for one: it wants a point, and a sign in the exponent.

    >>> _plain_float(1e-06), _plain_float(3.0), _plain_float(1e+20)
    ('1.0e-06', '3.0', '1.0e+20')
    """
    mantissa, mark, exponent = repr(value).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + mark + exponent
