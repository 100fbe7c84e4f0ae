"""A proof names the code it proves and its fingerprint: when the code moves and the proof does not, this fails."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

import mosha.noise

FOLDER = Path(mosha.noise.__file__).parent
PROOFS = sorted(FOLDER.glob("*.md"))
CLAIM = re.compile(r"^Proves `(?P<module>\w+)\.(?P<name>\w+)` at (?P<fingerprint>[0-9a-f]{16})\.$", re.MULTILINE)


def definition(module, name):
    """The definition of `name` without docstrings, comments and blank lines."""
    text = (FOLDER / f"{module}.py").read_text(encoding="utf-8")
    (node,) = (node for node in ast.parse(text).body if name in names(node))
    dropped = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(inner, clean=False) is not None:
            docstring = inner.body[0]
            dropped.update(range(docstring.lineno, docstring.end_lineno + 1))
    lines = enumerate(text.splitlines()[node.lineno - 1 : node.end_lineno], node.lineno)
    code = (re.sub(r"\s+#.*", "", line).rstrip() for number, line in lines if number not in dropped)
    return "\n".join(line for line in code if line and not line.lstrip().startswith("#"))


def names(node):
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    return {node.target.id} if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else set()


def fingerprint(module, name):
    return hashlib.sha256(definition(module, name).encode()).hexdigest()[:16]


@pytest.mark.parametrize("proof", PROOFS, ids=lambda path: path.name)
def test_the_code_has_not_moved_away_from_its_proof(proof):
    claims = list(CLAIM.finditer(proof.read_text(encoding="utf-8")))
    assert claims, f"{proof.name} names nothing that it proves"
    moved = {
        f"{claim['module']}.{claim['name']}": now
        for claim in claims
        if (now := fingerprint(claim["module"], claim["name"])) != claim["fingerprint"]
    }
    assert not moved, f"{proof.name}: read the proof against the code, then write the new fingerprints: {moved}"


def test_every_proof_is_referred_to_by_the_code_it_proves():
    for proof in PROOFS:
        modules = {claim["module"] for claim in CLAIM.finditer(proof.read_text(encoding="utf-8"))}
        for module in modules:
            assert f"`{proof.name}`" in (FOLDER / f"{module}.py").read_text(encoding="utf-8")


def test_a_fingerprint_sees_code_and_ignores_prose():
    assert "Guarantee" not in definition("envelope", "Envelope")
    assert "falls_below" in definition("envelope", "Envelope")
    assert fingerprint("envelope", "_SLACK") != fingerprint("envelope", "_MARGIN")
