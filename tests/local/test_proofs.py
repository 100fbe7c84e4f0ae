"""A proof names the code it proves; when the code moves and the proof does not, this fails."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

import mosha.local

FOLDER = Path(mosha.local.__file__).parent
CLAIM = re.compile(r"^Proves `(?P<module>\w+)\.(?P<name>\w+)` at (?P<fingerprint>[0-9a-f]{16})\.$", re.MULTILINE)
PROOFS = sorted(FOLDER.glob("*.md"))


def fingerprint(module, name):
    """Of the code of a function or class, without docstrings and formatting."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    (node,) = (n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and n.name == name)
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(inner) is not None:
            inner.body = inner.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]


@pytest.mark.parametrize("path", PROOFS, ids=lambda path: path.stem)
def test_the_code_has_not_moved_away_from_its_proof(path):
    claims = list(CLAIM.finditer(path.read_text(encoding="utf-8")))
    assert claims, f"{path.name} names nothing that it proves"
    moved = {
        f"{c['module']}.{c['name']}": now
        for c in claims
        if (now := fingerprint(c["module"], c["name"])) != c["fingerprint"]
    }
    assert not moved, f"{path.name}: read the proof against the code, then write the new fingerprints: {moved}"


@pytest.mark.parametrize("path", PROOFS, ids=lambda path: path.stem)
def test_a_proof_is_referred_to_by_its_code(path):
    assert f"`{path.name}`" in (FOLDER / f"{path.stem}.py").read_text(encoding="utf-8")
