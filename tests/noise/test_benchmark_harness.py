"""The benchmark command finds its modules and tells a cleared bar from a missed one. Nothing is timed here."""

import ast
import sys
import types
from pathlib import Path

import pytest

import benchmarks
from benchmarks.__main__ import main, names
from benchmarks._rows import Row, best_cpu, table

FOLDER = Path(benchmarks.__file__).parent


def test_every_benchmark_has_a_title_and_rows() -> None:
    assert "noise" in names()
    for name in names():
        tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), f"{name} has no title"
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
        targets += [node.target for node in tree.body if isinstance(node, ast.AnnAssign)]
        named = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        assert "main" in functions or "PIECES" in named, name


def test_a_ratio_below_its_bar_is_marked() -> None:
    rows = [Row("fast", "peer", 2.0, 1.0), Row("slow", "peer", 0.5, 1.0), Row("shown", "peer", 0.1)]
    fast, slow, shown = table(rows).splitlines()[1:]
    assert [row.cleared for row in rows] == [True, False, True]
    assert "BELOW" in slow
    assert "BELOW" not in fast + shown


def test_pieces_of_work_take_turns() -> None:
    turns = []
    seconds = best_cpu([lambda: turns.append("a"), lambda: turns.append("b")], repeats=3)
    assert turns == ["a", "b"] * 3
    assert all(second >= 0 for second in seconds)


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing-of-that-name"]) == 2
    assert "nothing-of-that-name" in capsys.readouterr().err


def test_pieces_are_chosen_by_name(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("benchmarks.audit", "Two pieces.")
    module.PIECES = {"one": lambda: [Row("one", "peer", 2.0, 1.0)], "two": lambda: [Row("two", "peer", 0.5, 1.0)]}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "benchmarks.audit", module)
    assert main(["--strict", "audit:one"]) == 0
    assert main(["--strict", "audit"]) == 1
    assert main(["audit:three"]) == 2
    assert "one, two" in capsys.readouterr().err
