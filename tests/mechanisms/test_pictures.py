"""Pictures of answers, and what happens without the extra."""

import sys
from typing import Any

import numpy as np
import pytest

import mosha
from mosha import Row
from mosha.core.errors import MissingExtra
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
