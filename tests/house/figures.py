"""All figures as one mapping, the bars that they must stay below, and how both are printed."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.house import imports, public, roads, source

HERE = Path(__file__).parent
BARS = HERE / "bars.json"
BEFORE = HERE / "before.json"
# What every folder must reach; a folder in bars.json may be above until then, and may not get worse.
GOALS = {"share of Any": 5.0, "participles": 0, "free-text errors": 0}


def by_folder() -> dict[str, dict[str, float]]:
    """The figures that are held folder by folder: for each of them, each folder's number."""
    loose = source.anything()
    return {
        "share of Any": {name: round(100 * some / max(every, 1), 1) for name, (some, every) in loose.items()},
        "participles": {name: len(found) for name, found in source.participles().items()},
        "free-text errors": {name: len(found) for name, found in source.free_text_errors().items()},
        "lines": dict(source.lines()),
    }


def of_the_whole() -> dict[str, float]:
    """The figures of the package as a whole, from its text alone."""
    loaded, every = imports.graphs()
    loose = source.anything().values()
    return {
        "files": len(source.modules()),
        "files in the largest room": max(source.files().values()),
        "lines": sum(source.lines().values()),
        "longest chain of imports": len(imports.longest_chain(loaded)),
        "knots": len(imports.knots(every)),
        "modules in knots": sum(map(len, imports.knots(every))),
        "share of Any": round(100 * sum(some for some, _ in loose) / sum(every for _, every in loose), 1),
        "participles": sum(map(len, source.participles().values())),
        "free-text errors": sum(map(len, source.free_text_errors().values())),
        "twins": len(source.twins()),
    }


def of_the_public() -> dict[str, float]:
    """How much of what is public is described, in percent."""
    found = public.describe().values()
    names, arguments = sum(d.names for d in found), sum(d.arguments for d in found)
    return {
        "public names": names,
        "with a docstring (%)": round(100 * sum(d.with_docstring for d in found) / names, 1),
        "with an example (%)": round(100 * sum(d.with_example for d in found) / names, 1),
        "public arguments": arguments,
        "arguments described (%)": round(100 * sum(d.arguments_described for d in found) / arguments, 1),
    }


def of_the_roads() -> dict[str, float]:
    """How many files each road passes."""
    return {f"files on the road: {name}": len(roads.walk(name)) for name in roads.ROADS}


def bars() -> dict[str, dict[str, float]]:
    """What no folder may exceed."""
    stored: dict[str, dict[str, float]] = json.loads(BARS.read_text(encoding="utf-8"))
    return stored


def worse(
    found: Mapping[str, Mapping[str, float]], whole: Mapping[str, float], allowed: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """What got worse: a folder that had reached the goal and left it, or a figure of the whole.

    A folder that is on its way (it has a bar) may rise while the whole does not: code that moves takes its debts along.
    """
    folders = [
        f"{figure} of {folder}: {number}, the goal is {goal}"
        for figure, goal in GOALS.items()
        for folder, number in found[figure].items()
        if number > goal and folder not in allowed[figure]
    ]
    return folders + [
        f"{figure} in all: {whole[figure]}, at most {limit} before"
        for figure, limit in allowed["in all"].items()
        if whole[figure] > limit
    ]


def lower(
    found: Mapping[str, Mapping[str, float]], whole: Mapping[str, float], allowed: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """The bars that follow from these figures: never above the old ones, and gone where the goal is reached.

    A folder without a bar is held to the goal: new folders begin with none.
    """
    bars = {
        figure: {
            folder: min(number, found[figure].get(folder, 0))
            for folder, number in sorted(allowed[figure].items())
            if found[figure].get(folder, 0) > goal
        }
        for figure, goal in GOALS.items()
    }
    return bars | {"in all": {figure: min(limit, whole[figure]) for figure, limit in allowed["in all"].items()}}


def table(figures: Mapping[str, float], before: Mapping[str, float]) -> str:
    """Markdown: each figure before and now."""
    rows = [f"| {name} | {before.get(name, '')} | {number} |" for name, number in figures.items()]
    return "\n".join(["| figure | before | now |", "|---|---|---|", *rows])


def folder_table(found: Mapping[str, Mapping[str, float]]) -> str:
    """Markdown: the figures of each folder."""
    titles = list(found)
    head = ["| folder | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    folders = sorted({folder for numbers in found.values() for folder in numbers})
    return "\n".join(head + [_line(folder, [found[title].get(folder, 0) for title in titles]) for folder in folders])


def _line(folder: str, numbers: list[float]) -> str:
    return f"| {folder} | " + " | ".join(map(str, numbers)) + " |"
