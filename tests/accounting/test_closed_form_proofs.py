"""A proof names the code it proves and its fingerprint: when the code moves and the proof does not, this fails."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

import mosha.accounting

FOLDER = Path(mosha.accounting.__file__).parent
NAMES = (
    "advanced",
    "blanket",
    "concentrated",
    "gaussian",
    "pure",
    "renyi",
    "rules",
    "shuffle",
    "subsampling",
    "tradeoff",
)
CLAIM = re.compile(r"^Proves `(?P<module>\w+)\.(?P<name>\w+)` at (?P<fingerprint>[0-9a-f]{16})\.$", re.MULTILINE)


def fingerprint(module, name):
    """Of the lines that define `name`, without docstrings, comments and blank lines."""
    text = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
    (node,) = (n for n in ast.parse(text).body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name)
    prose = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(inner, clean=False) is not None:
            prose |= set(range(inner.body[0].lineno, inner.body[0].end_lineno + 1))
    lines = enumerate(text.splitlines()[node.lineno - 1 : node.end_lineno], node.lineno)
    code = [re.sub(r"(^|\s+)#\s.*", "", line).rstrip() for number, line in lines if number not in prose]
    return hashlib.sha256("\n".join(line for line in code if line).encode()).hexdigest()[:16]


@pytest.mark.parametrize("name", NAMES)
def test_the_code_has_not_moved_away_from_its_proof(name):
    claims = list(CLAIM.finditer((FOLDER / f"{name}.md").read_text(encoding="utf-8")))
    assert claims, f"{name}.md names nothing that it proves"
    moved = {
        f"{claim['module']}.{claim['name']}": now
        for claim in claims
        if (now := fingerprint(claim["module"], claim["name"])) != claim["fingerprint"]
    }
    assert not moved, f"{name}.md: read the proof against the code, then write the new fingerprints: {moved}"


@pytest.mark.parametrize("name", NAMES)
def test_a_proof_is_referred_to_by_the_code_it_proves(name):
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    own = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"`{name}.md`" in own
    assert all((FOLDER / f"{claim['module']}.py").is_file() for claim in CLAIM.finditer(text))


def test_a_fingerprint_sees_code_and_ignores_prose():
    assert fingerprint("advanced", "optimal") != fingerprint("advanced", "optimal_delta")
    assert len(fingerprint("gaussian", "delta")) == 16
