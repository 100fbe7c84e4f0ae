"""What the text of the source says: lines, names, types, errors, twins."""

import ast
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "mosha"
CODE = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Participles without a regular ending, and adjectives that once named functions here.
IRREGULAR = _words(
    "begun bent born bought broken brought built caught chosen cut dealt done drawn driven fed felt flown "
    "forgotten found frozen given gone grown heard held hidden kept known laid led left lent lost made meant met paid "
    "proven put read run said seen sent set shown shut sold spent split spread stolen struck swept sworn taken taught "
    "thought thrown told torn understood woken won worn written wrong whole plain bare alike alone apart big cheap "
    "clean empty exact fair fine flat full good large late long new old own quick raw ready right rough "
    "safe same sharp short small sorted straight tight true weak wide"
)
# Words that end like a participle and are verbs, nouns or prepositions ("given sex"), and verbs of the list above.
VERBS = _words(
    "cut put read run set shut split spread clean empty feed need seed embed exceed speed shed bleed bed red lead given"
)


@cache
def modules(package: Path = PACKAGE) -> dict[str, ast.Module]:
    """Each file of the package by its path in it."""
    return {
        str(path.relative_to(package)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def folder_of(path: str) -> str:
    """The folder of the package that a file is in; files at the top are in `mosha`."""
    return path.split("/", maxsplit=1)[0] if "/" in path else "mosha"


def files(package: Path = PACKAGE) -> dict[str, int]:
    """How many files each room has."""
    return dict(Counter(str(Path(path).parent) for path in modules(package)))


def lines(package: Path = PACKAGE) -> dict[str, int]:
    """How many lines each folder has."""
    found: Counter[str] = Counter()
    for path in modules(package):
        found[folder_of(path)] += len((package / path).read_text(encoding="utf-8").splitlines())
    return dict(found)


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method of a file."""
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def is_participle(name: str) -> bool:
    """Whether a function has a bare participle or adjective for a name.

    >>> [name for name in ("_told", "kept", "read_rows", "embed", "_clipped", "__init__") if is_participle(name)]
    ['_told', 'kept', '_clipped']
    """
    word = name.strip("_")
    if name.startswith("__") or "_" in word or word in VERBS:
        return False
    return word in IRREGULAR or (word.endswith("ed") and len(word) > 3)


def participles(package: Path = PACKAGE) -> dict[str, list[str]]:
    """The functions and methods of each folder that are named by a participle: `file:name`."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules(package).items():
        found[folder_of(path)] += [
            f"{path}:{node.name}" for node in functions(tree) if is_participle(node.name) and not _is_property(node)
        ]
    return dict(found)


def _is_property(node: Function) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in node.decorator_list)


def arguments(node: Function) -> list[ast.arg]:
    """The arguments of a function, without `self` and `cls`."""
    given = node.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [argument for argument in every if argument is not None and argument.arg not in {"self", "cls"}]


def anything(package: Path = PACKAGE) -> dict[str, tuple[int, int]]:
    """For each folder how many argument annotations contain `Any`, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for path, tree in modules(package).items():
        annotations = [ast.unparse(a.annotation) for f in functions(tree) for a in arguments(f) if a.annotation]
        loose = sum(1 for annotation in annotations if re.search(r"\bAny\b", annotation))
        before = found.get(folder_of(path), (0, 0))
        found[folder_of(path)] = (before[0] + loose, before[1] + len(annotations))
    return found


def error_names(package: Path = PACKAGE) -> frozenset[str]:
    """The names of the tree of errors."""
    tree = modules(package)["core/errors.py"]
    return frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef))


def free_text_errors(package: Path = PACKAGE) -> dict[str, list[str]]:
    """For each folder the places that raise one of our errors with a sentence where a code belongs: `file:line`."""
    ours = error_names(package) - {"MissingExtra"}  # it begins with the name of an extra
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules(package).items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and _called(node) in ours and node.args):
                continue
            first = node.args[0]
            text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None
            if isinstance(first, ast.JoinedStr | ast.BinOp | ast.IfExp) or (text and not CODE.fullmatch(text)):
                found[folder_of(path)].append(f"{path}:{node.lineno}")
    return dict(found)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def twins(package: Path = PACKAGE, least: int = 3) -> list[list[str]]:
    """Functions with the same shape: equal but for names and constants, with at least this many statements."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules(package).items():
        for node in functions(tree):
            if sum(isinstance(part, ast.stmt) for part in ast.walk(node)) > least:
                shape = hashlib.sha256(_shape(node.body).encode()).hexdigest()
                found[shape].append(f"{path}:{node.name}")
    return [places for places in found.values() if len(places) > 1]


def _shape(node: object) -> str:
    if isinstance(node, ast.Constant):
        return "constant"
    if isinstance(node, ast.AST):
        return f"{type(node).__name__}({', '.join(_shape(value) for _, value in ast.iter_fields(node))})"
    return f"[{', '.join(map(_shape, node))}]" if isinstance(node, list) else "_"
