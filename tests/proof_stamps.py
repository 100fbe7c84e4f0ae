"""Proof files name the code they prove: `*Proves `module:name` (code 0123456789ab).*`

The code is a hash of the syntax tree without docstrings, so that comments, layout and words may change freely and
anything else may not. After reading a proof again and finding it still true, stamp it, and only it:

    python -m tests.proof_stamps learning/rounding.md
"""

import ast
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "mosha"
PROOFS = sorted(PACKAGE.rglob("*.md"))
STAMP = re.compile(r"^\*Proves `(?P<module>[\w.]+):(?P<name>\w+)` \(code (?P<code>[0-9a-f]{12})\)\.\*$", re.MULTILINE)


def tree(node: Any) -> str:
    """A syntax tree as plain text, the same in every version of Python: without positions, docstrings, empty fields."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
        body = fields.get("body")
        if isinstance(body, list) and body and is_docstring(body[0]):
            fields["body"] = body[1:]
        return f"{type(node).__name__}({', '.join(f'{name}={tree(value)}' for name, value in fields.items())})"
    if isinstance(node, list):
        return f"[{', '.join(map(tree, node))}]"
    return repr(node)


def is_docstring(node: Any) -> Any:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def code(source: Any, name: Any) -> Any:
    """The stamp of what this source text defines as `name`: a function, a class or a constant."""
    (node,) = (node for node in ast.parse(source).body if name in names(node))
    return hashlib.sha256(tree(ast.Module(body=[node], type_ignores=[])).encode()).hexdigest()[:12]


def names(node: Any) -> set[Any]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def code_of(module: Any, name: Any) -> Any:
    path = PACKAGE.parent.joinpath(*module.split("."))
    return code(path.with_suffix(".py").read_text(encoding="utf-8"), name)


def stamps() -> list[Any]:
    """(file, module, name, code) of every stamp in every proof file."""
    return [
        (path, match["module"], match["name"], match["code"])
        for path in PROOFS
        for match in STAMP.finditer(path.read_text(encoding="utf-8"))
    ]


def restamp(path: Any) -> None:
    text = STAMP.sub(
        lambda m: f"*Proves `{m['module']}:{m['name']}` (code {code_of(m['module'], m['name'])}).*",
        path.read_text(encoding="utf-8"),
    )
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        restamp(PACKAGE / given)
