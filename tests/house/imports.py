"""The graph of imports: its longest chain, and the knots in it."""

import ast
from collections.abc import Mapping
from pathlib import Path

from tests.house.source import PACKAGE, modules

Graph = Mapping[str, set[str]]


def graphs(package: Path = PACKAGE) -> tuple[Graph, Graph]:
    """Who imports whom: when a file is loaded, and in all (inside functions and for type checkers too)."""
    names = {_module(path): path for path in modules(package)}
    loaded: dict[str, set[str]] = {}
    every: dict[str, set[str]] = {}
    for name, path in names.items():
        tree = modules(package)[path]
        late = _late(tree)
        loaded[name], every[name] = set(), set()
        for node in ast.walk(tree):
            targets = _targets(node, names) - {name}
            every[name] |= targets
            if id(node) not in late:
                loaded[name] |= targets
    return loaded, every


def _module(path: str) -> str:
    return ".".join(["mosha", *Path(path).with_suffix("").parts]).removesuffix(".__init__")


def _late(tree: ast.Module) -> set[int]:
    """The parts of a file that do not run when it is loaded."""
    found: set[int] = set()
    for node in ast.walk(tree):
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if inside or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            found.update(id(part) for part in ast.walk(node))
    return found


def _targets(node: ast.AST, names: Mapping[str, str]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in names}
    if isinstance(node, ast.ImportFrom) and node.module in names:
        whole = {f"{node.module}.{alias.name}" for alias in node.names}
        return {name if name in names else node.module for name in whole}
    return set()


def knots(graph: Graph) -> list[list[str]]:
    """The sets of modules that import each other in a circle.

    >>> knots({"a": {"b"}, "b": {"a"}, "c": {"a"}})
    [['a', 'b']]
    """
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        _visit(graph, start, seen, order)
    backwards: dict[str, set[str]] = {name: set() for name in graph}
    for name, targets in graph.items():
        for target in targets:
            backwards[target].add(name)
    seen, found = set(), []
    for start in reversed(order):
        group: list[str] = []
        _visit(backwards, start, seen, group)
        if len(group) > 1:
            found.append(sorted(group))
    return sorted(found)


def _visit(graph: Graph, start: str, seen: set[str], order: list[str]) -> None:
    """Depth first from here; `order` gets each module after all that it leads to."""
    if start in seen:
        return
    seen.add(start)
    path = [(start, iter(sorted(graph[start])))]
    while path:
        name, targets = path[-1]
        following = next((target for target in targets if target not in seen), None)
        if following is None:
            order.append(name)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(sorted(graph[following]))))


def longest_chain(graph: Graph) -> list[str]:
    """The longest chain of imports; the graph must have no circle.

    >>> longest_chain({"a": {"b"}, "b": {"c"}, "c": set(), "d": {"c"}})
    ['a', 'b', 'c']
    """
    order: list[str] = []
    seen: set[str] = set()
    for start in graph:
        _visit(graph, start, seen, order)
    chains: dict[str, list[str]] = {}
    for name in order:
        tails = [chains[target] for target in sorted(graph[name]) if target in chains]
        chains[name] = [name, *max(tails, key=len, default=[])]
    return max(chains.values(), key=len)
