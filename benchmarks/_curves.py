"""The curves of `benchmarks/scale.py` as a picture: CPU seconds over size, both logarithmic, a panel for each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mosha.pictures.figure import INK, begin_figure, style_axes, use_style

__all__ = ["Line", "draw_curves"]

COLORS = ("#2f6f8f", "#b5622b", "#5b8c3a", "#8a4f9e", "#a8323e", "#56606e", "#c0932f", "#2a8f86")
TITLES = {
    "tables": "表格 · 按行数", "groups": "表格 · 按组数", "local": "本地调查", "samples": "抽样",
    "streams": "数据流", "graphs": "图", "noise": "噪声", "accounting": "记账", "ledger": "账本",
    "texts": "流行文本", "learning": "训练", "federated": "联邦学习",
}  # fmt: skip


ENGLISH = {
    "tables": "tables, by rows", "groups": "tables, by groups", "local": "local surveys", "texts": "popular texts",
    "learning": "training", "federated": "federated learning",
}  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One curve: its name in both languages, sizes and CPU seconds."""

    english: str
    chinese: str
    sizes: Sequence[int]
    costs: Sequence[float]
    dashed: bool = False


def draw_curves(panels: Mapping[str, Sequence[Line]], path: Path, language: Literal["en", "zh"]) -> None:
    """Write the picture; a thin line in each panel has the slope of work that grows as its size does."""
    with use_style():
        figure = begin_figure(11, 16)
        grid = figure.subplots(4, 3)
        for axes, (name, lines) in zip(grid.flat, panels.items(), strict=False):
            style_axes(axes)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_title(TITLES[name] if language == "zh" else ENGLISH.get(name, name))
            for color, line in zip(COLORS, lines, strict=False):
                label = line.chinese if language == "zh" else line.english
                style = "--" if line.dashed else "-"
                axes.plot(
                    line.sizes, line.costs, style, color=color, marker="o", markersize=3, linewidth=1.4, label=label
                )
            first = lines[0]
            slope = [first.costs[0] * size / first.sizes[0] for size in first.sizes]
            axes.plot(first.sizes, slope, ":", color=INK, linewidth=0.8, alpha=0.6)
            axes.legend(fontsize=6.5, handlelength=3, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12))
        for axes in grid[:, 0]:
            axes.set_ylabel("CPU 秒" if language == "zh" else "CPU seconds")
        figure.savefig(path, dpi=110)
