"""Small line charts as SVG, in the colours of the page that they stand in."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray

HEIGHT = 200  # px
LEFT, RIGHT, TOP, BOTTOM = 48, 12, 26, 38  # px round the plot
TICKS = 5  # about
CAP = 3  # px, half the width of an error bar's end


@dataclass(frozen=True)
class Chart:
    """``y`` (n,) over ``x`` (n,), with bars from ``low`` to ``high`` (n,) where there are any.

    ``span`` is what the y axis shows; without one, what is there. What is not finite is left out.
    """

    x: Array
    y: Array
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    low: Array | None = None
    high: Array | None = None
    span: tuple[float, float] | None = None

    def svg(self, width: int) -> str:
        """The chart, so many pixels wide."""
        seen = np.isfinite(self.x) & np.isfinite(self.y)
        bars = [] if self.low is None or self.high is None else [self.low[seen], self.high[seen]]
        x, y = self.x[seen], self.y[seen]
        x_from, x_to = _span(x)
        y_from, y_to = self.span or _span(np.concatenate([y, *bars]))
        at_x = LEFT + (width - LEFT - RIGHT) * (x - x_from) / (x_to - x_from)

        def up(values: Array) -> Array:
            return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (values - y_from) / (y_to - y_from)

        drawn = []
        for value in ticks(y_from, y_to):
            at = up(value)
            drawn.append(f"<path class='grid' d='M{LEFT} {at:.1f}H{width - RIGHT}'/>")
            drawn.append(_text(LEFT - 6, at + 4, f"{value:g}", "end"))
        for value in ticks(x_from, x_to):
            at = LEFT + (width - LEFT - RIGHT) * (value - x_from) / (x_to - x_from)
            drawn.append(f"<path class='grid' d='M{at:.1f} {TOP}V{HEIGHT - BOTTOM}'/>")
            drawn.append(_text(at, HEIGHT - BOTTOM + 16, f"{value:g}"))
        middle = (LEFT + width - RIGHT) / 2
        drawn.append(_text(middle, 16, self.title))
        drawn.append(_text(middle, HEIGHT - 6, self.x_label))
        drawn.append(_text(LEFT - 6, TOP - 10, self.y_label, "end"))
        if bars:
            for at, low, high in zip(at_x, up(bars[0]), up(bars[1]), strict=True):
                ends = "".join(f"M{at - CAP:.1f} {end:.1f}h{2 * CAP}" for end in (low, high))
                drawn.append(f"<path class='line' d='M{at:.1f} {low:.1f}V{high:.1f}{ends}'/>")
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(at_x, up(y), strict=True))
        drawn.append(f"<polyline class='line' points='{points}'/>")
        about = f"role='img' aria-label='{html.escape(self.title)}'"
        size = f"viewBox='0 0 {width} {HEIGHT}' width='{width}' height='{HEIGHT}'"
        return f"<svg {about} {size}>{''.join(drawn)}</svg>"


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers from ``low`` to ``high``."""
    rough = (high - low) / TICKS
    unit = 10.0 ** np.floor(np.log10(rough))
    step = unit * next(k for k in (1, 2, 5, 10) if k * unit >= rough)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [round(float(k * step), 12) + 0.0 for k in np.arange(first, last + 1)]


def _span(values: Array) -> tuple[float, float]:
    """The least and the greatest of them, apart."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    if not text:
        return ""
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{html.escape(text)}</text>"


def row(charts: Sequence[Chart], width: int) -> str:
    """Charts side by side, together so many pixels wide."""
    return f"<div class='charts'>{''.join(c.svg(width // len(charts)) for c in charts)}</div>"
