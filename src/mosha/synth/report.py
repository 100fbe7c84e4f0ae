"""How good a synthetic table is, by a second look at the data that the fit never saw."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from mosha.core.canvas import draw_as_asked, find_wishes
from mosha.core.language import Language, say
from mosha.mechanisms.residuals.axis import Reals
from mosha.synth.fitted import Fitted

__all__ = ["Report", "describe_method", "make_report"]

UPPER = 1.645
"""One-sided 95% of the normal law."""


@dataclass(frozen=True)
class PairReport:
    """One pair of columns: the root of the mean squared error of its cells, in rows, as the second look has it.

    `error` is unbiased in its square (0 where the look saw less than its own noise), `at_most` holds in 95% of all
    releases.
    """

    first: str
    second: str
    cells: int
    error: float
    at_most: float


@dataclass(frozen=True, eq=False)
class Report:
    """What can be said of a synthetic table without reading the private one again.

    Made by `report`: the `method`, `rows`, the `total`, the `misfit` of the model, the `error` of pairs and at most how
    much (`at_most`), all `pairs` and `tables`, `unit` and `receipt`.

    >>> import mosha
    >>> account = mosha.Ledger.memory().account("people", unit=mosha.Row(), epsilon=8, delta=1e-6)
    >>> people = mosha.protect({"sex": ["F", "M"] * 50, "job": ["a", "b"] * 50}, unit=mosha.Row(), account=account)
    >>> made = people.synthesize(keys={"sex": ["F", "M"], "job": ["a", "b"]}).release(epsilon=5, delta=1e-6)
    >>> made.report().method == made.method
    True
    """

    method: str
    rows: int
    total: float
    misfit: float
    error: float
    at_most: float
    pairs: tuple[PairReport, ...]
    tables: tuple[tuple[str, tuple[str, ...], Reals, Reals, float], ...]
    unit: str
    receipt: str

    def __str__(self) -> str:
        lines = [
            say("synth.report_rows", rows=self.rows, method=describe_method(self.method), total=self.total),
            say("synth.report_error", error=self.error, at_most=self.at_most),
            say("synth.report_second_look"),
        ]
        worst = sorted(self.pairs, key=lambda pair: -pair.error)[:3]
        lines += [say("synth.report_pair", **vars(pair)) for pair in worst if pair.error > 0]
        if self.misfit > 1.5:
            lines.append(say("synth.report_misfit", misfit=self.misfit))
        lines += [
            say("synth.report_unknown"),
            say("synth.report_intervals"),
            say("synth.report_hidden", unit=self.unit, receipt=self.receipt),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(line)}</p>" for line in str(self).splitlines())

    def plot(
        self, *, ax: object | None = None, title: str | None = None, unit: str | None = None,
        lang: Language | None = None,
    ) -> Any:  # fmt: skip
        """One-ways of the model beside those that were measured, with bars of 95% (needs the extra `plot`).

        Args:
            ax: axes of matplotlib to draw on.
            title: what stands above.
            unit: what the numbers are counted in.
            lang: "en" or "zh"; the chosen language where it is left out.
        """

        def describe() -> str:
            said = say("synth.picture_footer"), say("synth.report_hidden", unit=self.unit, receipt=self.receipt)
            return "\n".join((*said, say("core.picture_drawn", date=datetime.now(UTC).date().isoformat())))

        return draw_as_asked(self._draw, ax=ax, title=title, unit=unit, lang=lang, footer=describe)

    def _draw(self) -> Any:
        """A panel for each column."""
        from mosha.pictures.figure import BAND, INK, style_axes, use_style  # noqa: PLC0415
        from mosha.pictures.panels import begin_panels, frame_picture  # noqa: PLC0415

        across = min(4, len(self.tables))
        down = math.ceil(len(self.tables) / across)
        with use_style():
            figure, panels = begin_panels(3.6 * across, 2.4 * down + 0.3, down=down, across=across)
            for axes in panels[len(self.tables) :]:
                axes.remove()
            panels = panels[: len(self.tables)]
            for place, (axes, (name, labels, model, measured, deviation)) in enumerate(
                zip(panels, self.tables, strict=True)
            ):
                style_axes(axes)
                spots = np.arange(len(labels))
                axes.bar(spots, model, color=BAND)
                axes.errorbar(spots, measured, yerr=1.96 * deviation, fmt=".", color=INK, markersize=3, linewidth=0.7)
                axes.set_title(name, fontsize=9)
                ticks = spots[:: max(1, len(labels) // 6)]
                axes.set_xticks(ticks, [labels[i][:10] for i in ticks], fontsize=6, rotation=30)
                axes.tick_params(axis="y", labelsize=7)
                if place % across == 0:
                    axes.set_ylabel(find_wishes().unit or "")
            labels_used = "".join(name + "".join(labels) for name, labels, *_ in self.tables)
            frame_picture(figure, panels, title="", labels=labels_used, above=True)
        return figure


def describe_method(method: str) -> str:
    """The name of a method in the reader's language.

    >>> describe_method("all pairs")
    'all pairs'
    """
    return say(f"synth.method_{method.replace(' ', '_')}")


def make_report(made: Fitted) -> Report:
    """The report of a synthetic table: post-processing of its second look."""
    pairs, total_square, total_spread, total_cells = [], 0.0, 0.0, 0
    for term, seen in made.look.residuals.items():
        if not term:
            continue
        model = _model_table(made, term)
        deviation = made.look.deviations[term]
        freedom = math.prod(size - 1 for size in seen.shape)
        square = float(((model - seen) ** 2).sum()) - freedom * deviation**2
        spread = deviation**2 * math.sqrt(2 * freedom + 4 * max(square, 0.0) / deviation**2)
        total_square, total_spread, total_cells = (
            total_square + square,
            total_spread + spread**2,
            total_cells + seen.size,
        )
        if len(term) == 2:
            names = [made.columns[number % len(made.columns)].name for number, _ in term]
            least, most = (math.sqrt(max(s, 0.0) / seen.size) for s in (square, square + UPPER * spread))
            pairs.append(PairReport(names[0], names[1], seen.size, least, most))
    upper = total_square + UPPER * math.sqrt(total_spread)
    cells = max(total_cells, 1)
    return Report(
        method=made.method,
        rows=made.rows,
        total=made.model.total,
        misfit=made.model.mixture.misfit,
        error=math.sqrt(max(total_square, 0.0) / cells),
        at_most=math.sqrt(max(upper, 0.0) / cells),
        pairs=tuple(pairs),
        tables=tuple(_one_way(made, place) for place in range(len(made.columns))),
        unit=made.unit.describe(),
        receipt="" if made.receipt is None else str(made.receipt),
    )


def _model_table(made: Fitted, term: tuple[tuple[int, int], ...]) -> Reals:
    """What the model says of a term of the look, in rows, centred."""
    count = len(made.columns)
    places = [number % count for number, _ in term]
    table = made.model.marginal(places) * made.model.total
    for axis, (number, _) in enumerate(term):
        if number >= count:
            groups = made.design.groups[number % count]
            moved = np.moveaxis(table, axis, 0)
            merged = np.zeros((int(groups.max()) + 1, *moved.shape[1:]))
            np.add.at(merged, groups, moved)
            table = np.moveaxis(merged, 0, axis)
        table = table - table.mean(axis=axis, keepdims=True)
    return np.asarray(table, np.float64)


def _one_way(made: Fitted, place: int) -> tuple[str, tuple[str, ...], Reals, Reals, float]:
    column = made.columns[place]
    model = made.model.marginal([place]) * made.model.total
    measured = made.measured.marginal((place,))
    deviation = math.sqrt(float(made.measured.cell_variance((place,)).max()))
    return column.name, tuple(str(label) for label in column.labels), model, measured, deviation
