"""Nothing that Mosha reads is run: no file, no answer and no text becomes code."""

import ast
from collections.abc import Iterator
from typing import Any

import pytest

from tests.project.pages import ROOT

MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    "torch.load",
    "torch.save",
    "yaml.load",
    "yaml.load_all",
    "yaml.unsafe_load",
    "yaml.full_load",
    "pd.read_pickle",
    "pandas.read_pickle",
}
KEYWORDS = {("weights_only", False), ("allow_pickle", True)}


def imported(node: Any) -> set[Any]:
    if isinstance(node, ast.Import):
        return {name.name.split(".")[0] for name in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {(node.module or "").split(".")[0]}
    return set()


def name_of(called: Any) -> Any:
    """`f` of f(...), `a.f` of a.f(...), `.f` of anything.f(...): the method of a value, such as model.eval()."""
    if isinstance(called, ast.Attribute):
        return f"{called.value.id}.{called.attr}" if isinstance(called.value, ast.Name) else f".{called.attr}"
    return getattr(called, "id", "")


def fault_of_call(node: Any) -> Any:
    name = name_of(node.func)
    if name in CALLS or name in METHODS or name.removeprefix("builtins.") in CALLS:
        return f"calls {name}"
    if name.endswith("import_module") and getattr(node.args[0], "value", "") in MODULES:
        return f"imports {node.args[0].value}"
    given = {(k.arg, k.value.value) for k in node.keywords if isinstance(k.value, ast.Constant)}
    return f"gives {given & KEYWORDS}" if given & KEYWORDS else None


def faults(text: Any) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if imported(node) & MODULES:
            yield f"line {node.lineno}: imports {imported(node) & MODULES}"  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and (fault := fault_of_call(node)):
            yield f"line {node.lineno}: {fault}"


OWN_PROGRAM = "src/mosha/classroom/exercises/exercise.py"  # `mosha learn check` runs the reader's own answer


def test_no_file_of_the_package_runs_what_it_reads() -> None:
    found = {
        str(path.relative_to(ROOT)): list(faults(path.read_text(encoding="utf-8")))
        for path in (ROOT / "src/mosha").rglob("*.py")
    }
    assert len(found) > 100
    assert len(found.pop(OWN_PROGRAM)) == 2  # exec and compile, in one line
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize(
    "planted",
    [
        "import pickle",
        "def f():\n    from pickle import loads",
        "import marshal as m",
        "torch.load(path)",
        "read(path, weights_only=False)",
        "np.load(path, allow_pickle=True)",
        "eval(text)",
        "exec(text)",
        "yaml.load(text)",
        "importlib.import_module('shelve')",
        "builtins.eval(text)",
    ],
)
def test_a_planted_one_is_found(planted: str) -> None:
    assert list(faults(planted))


def test_what_is_harmless_is_not() -> None:
    assert not list(faults("model.eval()\nyaml.safe_load(text)\nnp.load(path, allow_pickle=False)\nre.compile(text)"))
