"""Pictures of activities over time as SVG text, for exports and reports, as the dashboard draws them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from colorsys import hls_to_rgb
from typing import Final, NamedTuple

import pandas as pd

from planner.contract.drawing import Timeline
from planner.formatting import counted, number
from planner.reports.network_scale import PALETTES
from planner.reports.svg import Palette, document, escape_text, text_element, text_width

LANE_HEIGHT, LEAST_LANE_HEIGHT, MAX_LANES_HEIGHT = 26.0, 9.0, 900.0
TRACK_HEIGHT: Final = 16.0
"""Of each of the activities that a lane has at the same time."""
AXIS_HEIGHT: Final = 40.0
TICK_DISTANCE: Final = 90.0


def timeline_svg(
    drawing: Timeline,
    *,
    before: Timeline | None = None,
    dark: bool = False,
    width: int = 1000,
    title: bool = True,
    legend: bool = True,
) -> str:
    """Return the picture of activities over time as SVG, a lane for each place.

    before  activities of another plan, drawn faint below those of their lane
    """
    palette = PALETTES["dark" if dark else "light"]
    drawing, before = drawing.readable(before), None if before is None else before.readable(drawing)
    frame, others = _split_tracks(drawing, before)
    tracks = 1 + max((int(frame_["track"].max()) for frame_ in (frame, others) if len(frame_)), default=0)
    lanes = [str(name) for name in pd.unique(frame["lane"])]
    whats = [str(name) for name in pd.unique(pd.concat([frame["what"], others["what"]]))]
    colour = {name: _what_colour(index, len(whats), palette, dark=dark) for index, name in enumerate(whats)}
    top = 58.0 if title or legend else 6.0
    usual = max(LANE_HEIGHT, TRACK_HEIGHT * tracks)
    lane_height = max(LEAST_LANE_HEIGHT, min(usual, MAX_LANES_HEIGHT / max(1, len(lanes))))
    gutter = min(0.3 * width, max((text_width(name, 13) for name in lanes), default=0.0) + 16)
    times = pd.concat([frame[["start", "end"]], others[["start", "end"]]]).to_numpy(float)
    first, last = (float(times.min()), float(times.max())) if len(times) else (0.0, 1.0)
    pixels = (width - gutter - 12) / ((last - first) or 1.0)
    bottom = top + lane_height * len(lanes)

    bars = _Bars(
        drawing=drawing,
        lanes=lanes,
        colour=colour,
        palette=palette,
        left=gutter,
        top=top,
        lane_height=lane_height,
        first=first,
        pixels=pixels,
        tracks=tracks,
    )
    parts = [f'<rect width="100%" height="100%" fill="{palette["page"]}"/>'] if dark else []
    if title:
        parts.append(text_element(0, 34, drawing.title, 16, palette["ink"], weight=650))
    if legend and 1 < len(whats) <= len(palette["groups"]):
        parts += _colour_key(drawing.what, colour, palette, width)
    parts += _time_axis((first, last), gutter, pixels, (top, bottom), drawing.unit, palette, width)
    parts += bars.in_lanes(frame, others, has_others=before is not None)
    parts += bars.lane_names()
    name = f"{drawing.title}: {counted(len(frame), 'activities')} in {counted(len(lanes), 'lanes')}"
    return document(width, bottom + AXIS_HEIGHT, name, parts)


def _split_tracks(drawing: Timeline, before: Timeline | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the activities with their tracks, and those of the other plan in the same lanes."""
    frame = drawing.frame.assign(track=drawing.tracks())
    if before is None:
        return frame, frame.iloc[:0]
    others = before.frame.assign(track=before.tracks())
    return frame, others[others["lane"].isin(frame["lane"])]


class _Bars(NamedTuple):
    """Scales of a timeline, by which activities become rectangles.

    lanes        names, from the top
    colour       of each target
    left, top    edges of the first lane, pixels
    lane_height  pixels
    first        time at the left edge
    pixels       per unit of time
    tracks       activities that a lane has at the same time, at most
    """

    drawing: Timeline
    lanes: list[str]
    colour: dict[str, str]
    palette: Palette
    left: float
    top: float
    lane_height: float
    first: float
    pixels: float
    tracks: int

    def in_lanes(self, rows: pd.DataFrame, others: pd.DataFrame, *, has_others: bool) -> Iterator[str]:
        """Yield the activities, and those of another plan faint below them."""
        bar_height = 0.68 * self.lane_height - 2 if has_others else self.lane_height - 3
        yield from self.of(rows, 1, bar_height)
        yield '<g opacity="0.45">'
        yield from self.of(others, bar_height + 2, max(1.5, self.lane_height - bar_height - 4))
        yield "</g>"

    def lane_names(self) -> Iterator[str]:
        """Yield the names of lanes, as many as there is space for, at the left."""
        every = max(1, math.ceil(15 / self.lane_height))
        for index, name in enumerate(self.lanes[::every]):
            y = self.top + (every * index + 0.5) * self.lane_height + 4.5
            yield text_element(self.left - 8, y, name, 13, self.palette["ink"], anchor="end")

    def of(self, rows: pd.DataFrame, shift: float, high: float) -> Iterator[str]:
        """Yield the rectangles and texts of activities, `shift` below the top of lanes and `high` in all."""
        positions = {name: index for index, name in enumerate(self.lanes)}
        columns = (
            rows["lane"].astype(str),
            rows["what"].astype(str),
            rows["start"],
            rows["end"],
            rows["track"],
        )
        high /= self.tracks
        between = 1.0 if self.tracks > 1 else 0.0
        for lane, what, start, end, track in zip(*(list(column) for column in columns), strict=True):
            x = self.left + (start - self.first) * self.pixels
            y = self.top + positions[lane] * self.lane_height + shift + track * high
            wide = max(0.8, (end - start) * self.pixels - 0.8)
            facts = f"{self.drawing.lanes} {lane}, {self.drawing.what} {what}"
            span = f"{number(start)} to {number(end)} {self.drawing.unit}"
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high - between:.1f}" '
                f'fill="{self.colour[what]}"><title>{escape_text(facts)}\n{escape_text(span)}</title></rect>'
            )
            if high >= 13 and text_width(what, 12) + 10 < wide:
                yield text_element(x + 5, y + high / 2 + 4.2, what, 12, self.palette["land"], weight=600)


def _what_colour(index: int, count: int, palette: Palette, *, dark: bool) -> str:
    """Return the colour of a target: one of few, or one of many hues."""
    if count <= len(palette["groups"]):
        return str(palette["groups"][index])
    lightness = (58 if dark else 36) + index % 2 * 10
    red, green, blue = hls_to_rgb(index * 137.508 % 360 / 360, lightness / 100, (42 + index % 3 * 8) / 100)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


def _colour_key(what: str, colour: Mapping[str, str], palette: Palette, width: float) -> Iterator[str]:
    """Yield the key of the colours, at the right above the picture."""
    x = width - sum(text_width(name, 12.5) + 30 for name in colour) - text_width(what, 12.5) - 4
    yield text_element(x, 34, what, 12.5, palette["ink"], weight=600)
    x += text_width(what, 12.5) + 16
    for name, shade in colour.items():
        yield f'<rect x="{x:.1f}" y="24" width="11" height="11" rx="2" fill="{shade}"/>'
        yield text_element(x + 15, 34, name, 12.5, palette["muted"])
        x += text_width(name, 12.5) + 30


def _time_axis(
    times: tuple[float, float],
    gutter: float,
    pixels: float,
    between: tuple[float, float],
    unit: str,
    palette: Palette,
    width: float,
) -> Iterator[str]:
    """Yield lines at round times from the top of the lanes to their bottom, and the times below them."""
    (first, last), (top, bottom) = times, between
    rough = TICK_DISTANCE / pixels
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(ratio * power for ratio in (1, 2, 5, 10) if ratio * power >= rough)
    for tick in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1):
        x = gutter + (tick * step - first) * pixels
        yield f'<path d="M{x:.1f} {top:.1f}V{bottom:.1f}" stroke="{palette["box"]}"/>'
        if x < width - 50:
            yield text_element(x, bottom + 18, number(tick * step), 12, palette["muted"], anchor="middle")
    yield text_element(width - 4, bottom + 18, unit, 12, palette["muted"], anchor="end")
