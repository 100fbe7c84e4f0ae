"""Pictures on dark paper, and Chinese where no font has it."""

import datetime as dt
import io
from typing import Any

import numpy as np
import pytest

import mosha
from mosha.pictures import (
    darken,
    draw_band,
    draw_degrees,
    draw_groups,
    draw_intervals,
    draw_training,
    draw_tree,
    figure,
)
from mosha.pictures.dark import is_dark

pytest.importorskip("matplotlib")

DRAWN = {
    "bars": lambda: draw_groups(
        {"w": ["a", "b"]}, {"n": [3.0, 5.0]}, {"n": [1.0, 1.0]}, notes={"n": ""}, footer="paid"
    ),
    "heat": lambda: draw_groups(
        {"w": ["a", "a", "b", "b"], "s": [1, 2, 1, 2]}, {"n": [3.0, 5, 9, 900]}, {"n": [1.0] * 4}, notes={"n": ""}
    ),
    "band": lambda: draw_band([3, 5, 4], 1.0, title="Arrivals"),
    "degrees": lambda: draw_degrees([10, 100, 50, 7, 1], 4),
    "intervals": lambda: draw_intervals(["25%", "50%"], [1, 2], [0.5, 0.5]),
    "training": lambda: draw_training([1, 2], [0.5, 0.8], [0.3, 0.5]),
    "tree": lambda: draw_tree([("all", 0, 0.5, "1 of 2")]),
}


def luminance(color: Any) -> float:
    from matplotlib.colors import to_rgba

    return float(np.dot(to_rgba(color)[:3], [0.299, 0.587, 0.114]))


def list_texts(drawn: Any) -> list[Any]:
    from matplotlib.text import Text

    on_images = {id(text) for axes in drawn.axes if axes.images for text in axes.texts}
    return [text for text in drawn.findobj(Text) if text.get_text() and id(text) not in on_images]


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_every_text_stands_out_on_dark_paper(draw: Any) -> None:
    drawn = darken(draw())
    assert is_dark(drawn.get_facecolor())
    drawn.canvas.draw()
    assert min(luminance(text.get_color()) for text in list_texts(drawn)) > 0.4
    assert darken(drawn) is drawn


def test_pictures_follow_a_dark_style_of_matplotlib() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"figure.facecolor": "black", "axes.facecolor": "black", "xtick.color": "white"}):
        drawn = DRAWN["bars"]()
        shown = drawn._repr_png_()
    assert is_dark(drawn.get_facecolor())
    assert shown.startswith(b"\x89PNG")
    assert not is_dark(DRAWN["bars"]().get_facecolor())


def test_where_no_font_has_chinese_labels_are_numbered_and_never_boxes(
    monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.setattr(figure, "has_chinese_font", lambda: False)
    drawn = draw_groups(
        {"科室": ["内科", "外科"]}, {"n": [3.0, 5.0]}, {"n": [1.0, 1.0]}, notes={"n": ""}, title="就诊", footer="已付"
    )
    drawn.savefig(io.BytesIO(), format="png")
    said = " ".join(text.get_text() for text in list_texts(drawn))
    assert not figure.CHINESE.search(said)
    assert "install Noto Sans CJK" in said.replace("\n", " ")
    assert len({label.get_text() for label in drawn.axes[0].get_xticklabels()}) == 2
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_a_release_draws_itself_with_a_title_a_unit_and_what_was_paid() -> None:
    from mosha.mechanisms import Histogram, laplace

    asked = laplace(Histogram(keys=["a", "b"]), unit=mosha.Row(), epsilon=1)
    release = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=5).open(asked).step(["a", "b"])
    drawn = release.plot(title="Visits", unit="rows")
    assert drawn.axes[0].get_title(loc="left") == "Visits"
    assert drawn.axes[0].get_ylabel() == "rows"
    assert drawn.get_supxlabel().startswith("Paid epsilon 1 from account a")


def test_months_and_years_are_named_without_what_all_of_them_have() -> None:
    drawn = draw_groups(
        {"day": [dt.date(2024, month, 1) for month in (1, 2, 3)]}, {"n": [1.0, 2, 3]}, {"n": [1.0] * 3}, notes={"n": ""}
    )
    assert [label.get_text() for label in drawn.axes[0].get_xticklabels()] == ["2024-01", "2024-02", "2024-03"]


def test_quantiles_without_groups_are_intervals_on_one_axis() -> None:
    account = mosha.Ledger.memory().account("a", unit=mosha.Row(), epsilon=50)
    asked = mosha.protect({"x": [float(10 + i % 30) for i in range(3000)]}, unit=mosha.Row(), account=account)
    drawn = asked.quantiles("x", [0.25, 0.5, 0.75], between=(0, 100)).release(epsilon=40).plot()
    assert len(drawn.axes) == 1
    assert len(drawn.axes[0].get_xticks()) == 3


def test_a_picture_in_a_notebook_is_dark_where_the_page_is() -> None:
    """White paper stood in every dark notebook; the page turns one picture, so that nothing is stored twice."""
    light = draw_band([3, 5, 4], 1.0, title="Arrivals <1>")._repr_html_()
    assert light.count("<img") == 1
    assert 'class="mosha-picture" alt="Arrivals &lt;1&gt;"' in light
    assert [word in light for word in ("prefers-color-scheme:dark", "data-jp-theme-light=false", "@media print")] == [
        True
    ] * 3
    assert "mosha-picture" not in darken(draw_band([3, 5], 1.0))._repr_html_().split("<img")[1]


def test_the_steps_of_a_stream_are_drawn_with_their_bars() -> None:
    counter = mosha.streams.counter(unit=mosha.Reading(), horizon=5, epsilon=1)
    with mosha.Ledger.memory().account("door", unit=mosha.Reading(), epsilon=1).open(counter) as run:
        releases = [run.step(["Ada"] * 20) for _ in range(5)]
    with pytest.raises(mosha.errors.InvalidParameter, match="draw_band"):
        releases[0].plot()
    drawn = draw_band(releases)
    assert drawn.axes[0].lines[0].get_ydata().tolist() == [release.value for release in releases]  # type: ignore[union-attr]
    assert "epsilon 1" in drawn.get_supxlabel()


def test_degrees_end_where_noise_is_all_that_is_left() -> None:
    drawn = draw_degrees([0, 900, 400, 90, *np.tile([3, -3], 2000)], 12)
    assert drawn.axes[0].get_xlim()[1] == pytest.approx(12)


def test_numbers_in_cells_have_the_same_digits_and_say_how_wide_bars_are() -> None:
    keys: dict[str, list[object]] = {"w": ["a", "a", "b", "b"], "s": [1, 2, 1, 2]}
    drawn = draw_groups(keys, {"mean": [2.0, 3.1, 1.5, 4.0]}, {"mean": [0.22, 1.8, 0.5, 0.5]}, notes={"mean": ""})
    assert [text.get_text() for text in drawn.axes[0].texts] == ["2.0", "3.1", "1.5", "4.0"]
    assert "0.22\N{EN DASH}1.8" in drawn.axes[0].get_title(loc="left")
