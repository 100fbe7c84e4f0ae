"""Proof files name the code they prove: `*Proves `module:name` (code 0123456789ab).*`

The code is a hash of the syntax tree without docstrings, so that comments, layout and words may change freely and
anything else may not. After reading the proof again and finding it still true, stamp it:

    python tests/streams/proof_stamps.py
"""

import ast
import hashlib
import importlib
import inspect
import re
import textwrap
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "src" / "mosha" / "streams"
STAMP = re.compile(r"^\*Proves `(?P<module>[\w.]+):(?P<name>\w+)` \(code (?P<code>[0-9a-f]{12})\)\.\*$", re.MULTILINE)


def tree(node):
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


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def code(source):
    """The stamp of a piece of source text."""
    return hashlib.sha256(tree(ast.parse(textwrap.dedent(source))).encode()).hexdigest()[:12]


def code_of(module, name):
    return code(inspect.getsource(inspect.unwrap(getattr(importlib.import_module(module), name))))


def stamps():
    """(file, module, name, code) of every stamp in every proof file."""
    return [
        (path, match["module"], match["name"], match["code"])
        for path in sorted(FOLDER.glob("*.md"))
        for match in STAMP.finditer(path.read_text())
    ]


def restamp():
    for path in sorted(FOLDER.glob("*.md")):
        text = path.read_text()
        stamped = STAMP.sub(
            lambda m: f"*Proves `{m['module']}:{m['name']}` (code {code_of(m['module'], m['name'])}).*", text
        )
        path.write_text(stamped)


if __name__ == "__main__":
    restamp()
