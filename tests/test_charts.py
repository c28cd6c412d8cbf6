"""Charts of the report: where points, bars and ticks stand."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from robo_rl.charts import HEIGHT, Chart, row, ticks


def points(svg: str) -> np.ndarray:
    """(n, 2) px of the chart's line."""
    found = re.search(r"points='([^']*)'", svg)[1].replace(",", " ")
    return np.array(found.split(), float).reshape(-1, 2)


def test_points_stand_where_their_values_are_and_what_is_not_finite_is_left_out() -> None:
    x, y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([0.0, 50.0, np.nan, 100.0])
    svg = Chart(x, y, "a < b", "steps", "%", y - 5, y + 5, span=(0.0, 100.0)).svg(400)
    found = points(svg)
    assert len(found) == 3 and (found[:, 0] < 400).all() and (found[:, 1] < HEIGHT).all()
    along = (found - found[0]) / (found[-1] - found[0])
    np.testing.assert_allclose(along, [[0, 0], [0.25, 0.5], [1, 1]], atol=1e-3)
    assert found[-1, 1] < found[0, 1]  # up is more
    page = ElementTree.fromstring(svg)
    assert "a < b" in [text.text for text in page.iter("text")]
    bars = [path for path in page.iter("path") if path.get("class") == "line"]
    assert len(bars) == 3
    # A tick stands where its value would.
    (forty,) = (t for t in page.iter("text") if t.text == "40")
    at = found[0, 1] + 0.4 * (found[-1, 1] - found[0, 1])
    assert float(forty.get("y")) - 4 == pytest.approx(at, abs=0.2)


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [
        (-3.0, 103.0, [0, 50, 100]),
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-0.001, 0.003, [-0.001, 0, 0.001, 0.002, 0.003]),
        (3990.0, 4210.0, [4000, 4050, 4100, 4150, 4200]),
    ],
)
def test_ticks_are_round(low: float, high: float, found: list[float]) -> None:
    assert ticks(low, high) == found


@pytest.mark.parametrize("y", [[], [np.nan, np.nan], [0.0, 0.0], [7.0], [-1e-9, 1e12]])
def test_any_values_make_a_chart(y: list[float]) -> None:
    svg = row([Chart(np.arange(len(y), dtype=float), np.array(y), "t")] * 2, 600)
    assert "nan" not in svg and len(list(ElementTree.fromstring(svg))) == 2
