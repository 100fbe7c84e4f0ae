"""Pictures of answers, and what happens without the extra."""

import sys
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import Row
from mosha.core.errors import MissingExtra
from mosha.core.language import current_language
from mosha.mechanisms import Count, Histogram, laplace, mean
from mosha.pictures import figure as drawing


def release(measurement: Any, data: Any) -> Any:
    return mosha.Ledger.memory().account("a", unit=measurement.unit, epsilon=5).open(measurement).step(data)


def test_a_histogram_is_drawn_with_a_bar_for_each_key_and_its_error() -> None:
    pytest.importorskip("matplotlib")
    figure = release(laplace(Histogram(keys=["a", "b", "c"]), unit=Row(), epsilon=1), ["a", "b"]).plot()
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    assert len(axes.patches) == 3
    assert len(axes.containers) == 2  # bars and their error bars


@pytest.mark.parametrize(
    "measurement",
    [laplace(Count(), unit=Row(), epsilon=1), mean(between=(0, 9), unit=Row(), epsilon=1)],
    ids=lambda m: m.name,
)
def test_a_number_is_drawn_as_a_dot(measurement: Any) -> None:
    pytest.importorskip("matplotlib")
    figure = release(measurement, [1, 2, 3]).plot()
    assert len(figure.axes[0].containers) == 1
    assert figure.axes[0].get_title(loc="left")


def test_a_picture_without_error_bars_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    assert laplace(Histogram(keys=[1, 2]), unit=Row(), epsilon=1).draw(np.array([1, 2]), None).axes


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match="extra 'plot'"):
        release(laplace(Count(), unit=Row(), epsilon=1), [1]).plot()


def test_a_font_that_was_installed_after_matplotlib_made_its_list_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = pytest.importorskip("matplotlib.font_manager").fontManager
    path = next(font.fname for font in manager.ttflist if font.fname.endswith("DejaVuSansMono.ttf"))
    monkeypatch.setattr(drawing, "CHINESE_FONTS", ("DejaVu Sans Mono",))
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if font.name != "DejaVu Sans Mono"])
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [path, __file__])  # one of them is no font
    assert drawing._find_fonts.__wrapped__() == ("DejaVu Sans Mono",)


def draw_graph(statistic: str, language: Any) -> Any:
    edges = [(i, i + 1) for i in range(59)] + [(0, i) for i in range(2, 30)]
    account = mosha.Ledger.memory().account("network", unit=mosha.Edge(), epsilon=5)
    graph = mosha.graphs.protect(edges, vertices=60, unit=mosha.Edge(), account=account)
    return getattr(graph, statistic)().release(epsilon=1).plot(lang=language)


@pytest.mark.parametrize(
    ("statistic", "words"),
    [("edges", "边数"), ("triangles", "三角形个数"), ("degree_histogram", "度的直方图"),
     ("degree_distribution", "度分布"), ("cumulative_degrees", "度的累积曲线"), ("degree_sequence", "从小到大的度")],
)  # fmt: skip
def test_pictures_speak_the_readers_language_and_name_no_class(statistic: str, words: str) -> None:
    """They were called TriangleCount and EdgeCount, and in English on a Chinese page."""
    pytest.importorskip("matplotlib")
    (axes,) = draw_graph(statistic, "zh").axes
    texts = [axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()]
    assert words in texts[0]
    assert not any(word in " ".join(texts) for word in ("Count", "degree", "vertices", "noise"))
    assert "Count" not in draw_graph(statistic, "en").axes[0].get_title(loc="left")
    assert current_language() == "en"


@pytest.mark.parametrize(("statistic", "most"), [("cumulative_degrees", 60), ("degree_distribution", 1)])
def test_no_band_is_drawn_where_no_number_can_be(statistic: str, most: float) -> None:
    """The part of the vertices was drawn with a band from -1 to 2."""
    pytest.importorskip("matplotlib")
    (axes,) = draw_graph(statistic, "en").axes
    heights = np.concatenate([path.vertices[:, 1] for band in axes.collections for path in band.get_paths()])
    assert heights.min() >= 0
    assert heights.max() <= most * (1 + 1e-9)


def test_quantiles_are_called_by_their_percentage() -> None:
    pytest.importorskip("matplotlib")
    account = mosha.Ledger.memory().account("visits", unit=Row(), epsilon=5)
    stays = mosha.protect({"days": [n % 20 for n in range(2000)]}, unit=Row(), account=account)
    (axes,) = stays.quantiles("days", [0.25, 0.5], between=(0, 30)).release(epsilon=2).plot().axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["25%", "50%"]
