"""Pictures of networks as SVG text, for exports and reports, as the dashboard draws them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import NetworkMap
from planner.formatting import amount_or_number, counted, number, printable
from planner.reports.joined_network import JoinedNetwork, join
from planner.reports.loss_labels import HALF_HEIGHT, Box, Loss, coverage_text, overlap, place_labels
from planner.reports.network_layout import COAST_STEP, Layout, lay_out, strip_offsets
from planner.reports.network_scale import PALETTES, Scale, node_scale, scale_of
from planner.reports.svg import Palette, document, escape_text, text_element, text_width

LEAST_HEIGHT, GREATEST_HEIGHT = 0.5, 1.05
"""Of a picture's width."""
MARGIN: Final = 46.0
MAX_TITLED_LINKS: Final = 1_500
"""Of a network whose links tell their values to a pointer over them; a larger one is drawn by colours."""
BOLD: Final = 1.16
"""Width of bold text beside that of plain text, in wide fonts."""
MAX_PILLS: Final = 5
PILL_FROM: Final = 1.5
"""Times the limit."""
NAME_AREA, MAX_NAMES = 3_800.0, 140
"""Square pixels for each name, and names at most."""
FEW_LINKS: Final = 80
"""Links of a network whose names keep clear of all of them; in larger ones of those of their node."""
MAX_NAME: Final = 200
"""Letters of a name that is shown beside its node, and to a pointer over its links."""
PLAIN_WIDTH: Final = 0.45


def network_svg(
    drawing: NetworkMap,
    *,
    dark: bool = False,
    width: int = 1000,
    title: bool = True,
    legend: bool = True,
    base_map: bool = True,
) -> str:
    """Return the picture of a network as SVG.

    width     pixels; the height follows from the network's shape
    base_map  draw coasts and borders, where nodes have coordinates
    """
    network = join(drawing) if drawing.whole is None else join(drawing.whole, drawing)
    nodes = network.nodes.rename_axis("node").reset_index()
    layout = lay_out(nodes, network.links)
    top = 58.0 if title or legend else 0.0
    picture = _Picture(network, layout, PALETTES["dark" if dark else "light"], width, top)
    picture.draw(base_map=base_map)
    palette = picture.palette
    head = []
    if title:
        head.append(text_element(0, 34, drawing.title, 16, palette["ink"], weight=650))
    if legend:
        head += _legend(scale_of(drawing), drawing.unit, palette, width)
    size = f"{counted(len(nodes), 'nodes')} and {counted(len(network.links), 'links')}"
    name = f"{drawing.title}: {size}, by {drawing.value}"
    ground = f'<rect width="100%" height="100%" fill="{palette["page"]}"/>' if dark else ""
    return document(width, top + picture.height, name, [ground, *head, *picture.parts])


def _legend(scale: Scale, unit: str, palette: Palette, width: float) -> Iterator[str]:
    """Yield five bars that grow with the value, at the right, with the words below them."""
    labels = [label if 0 < i < 4 else f"{label} {unit}".rstrip() for i, label in enumerate(scale.labels)]
    across = max(68.0, max(text_width(label, 12) for label in labels) + 6)
    for i, label in enumerate(labels):
        x, high = width - (5 - i) * (across + 4), 3 + 1.25 * i
        yield (
            f'<rect x="{x:.1f}" y="{26 - high:.1f}" width="{across:.1f}" height="{high:g}" rx="1.5" '
            f'fill="{palette["bands"][i]}"/>'
        )
        yield text_element(x, 42, label, 12, palette["muted"])


@dataclass
class _Picture:
    """A network's picture below `top`, part by part."""

    network: JoinedNetwork
    layout: Layout
    palette: Palette
    width: float
    top: float
    parts: list[str] = field(default_factory=list)
    taken: list[Box] = field(default_factory=list)

    def __post_init__(self) -> None:
        drawing, links = self.network.last, self.network.links
        self.names = list(self.network.nodes.index)
        index_of = pd.Series(np.arange(len(self.names)), index=self.names)
        self.tail, self.head = (index_of.loc[links[end]].to_numpy() for end in ("tail", "head"))
        self.values = self.network.links_of(drawing)["value"]
        self.scale = scale_of(drawing)
        self.band = self.scale.bands(self.values)
        self.is_over = self.values.to_numpy(float) > (math.inf if drawing.limit is None else drawing.limit)
        self.gone = self.network.absent_links(drawing)
        self.gone_nodes = self.network.absent_nodes(drawing)
        labels = self.network.nodes["label"] if "label" in self.network.nodes else pd.Series(dtype=str)
        self.labels = [_shortened(printable(str(labels.get(name, name)))) for name in self.names]
        self._fit()

    def _fit(self) -> None:
        """Set places on the paper: the network fills it, below the title and within the margin."""
        positions = self.layout.places
        low, high = positions.min(axis=0), positions.max(axis=0)
        extent = np.maximum(high - low, 1.0)
        share = np.clip(extent[1] / extent[0], LEAST_HEIGHT, GREATEST_HEIGHT)
        self.height = float(self.width * share)
        inner = np.array([self.width, self.height]) - 2 * MARGIN
        self.unit = float(min(*(inner / extent), 0.6))
        middle = np.array([self.width / 2, self.top + self.height / 2])
        self.origin = middle - (low + high) / 2 * self.unit
        self.places = positions * self.unit + self.origin
        apart = math.sqrt(self.width * self.height / max(1, len(positions)))
        self.thickness = float(np.clip(apart / 42, 0.32, 1.15))
        self.radius = np.full(len(positions), max(1.2, 3.7 * self.thickness))
        if "size" in self.network.nodes:
            sizes = self.network.nodes["size"].fillna(0.0).clip(lower=0.0).to_numpy(float)
            self.radius = np.maximum(self.radius * 0.8, 10 * np.sqrt(sizes / (sizes.max() or 1.0)))
        elif "value" in self.network.nodes:
            self.radius = self.radius * 1.5
        share = np.full(len(self.tail), PLAIN_WIDTH)
        if "width" in self.network.links:
            width = self.network.links["width"].fillna(0.0).clip(lower=0.0).to_numpy(float)
            share = np.sqrt(width / (width.max(initial=0.0) or 1.0))
        widths = 1.3 + 2.4 * share + 1.2 * self.is_over
        aside = strip_offsets(self.tail, self.head, widths) * self.thickness
        self.strip_width = widths * self.thickness
        ways = self.places[self.head] - self.places[self.tail]
        length = np.maximum(np.hypot(*ways.T), 1e-9)
        right = np.c_[-ways[:, 1], ways[:, 0]] / length[:, None] * aside[:, None]
        self.start, self.end, self.length = (
            self.places[self.tail] + right,
            self.places[self.head] + right,
            length,
        )

    def draw(self, *, base_map: bool) -> None:
        """Add all parts, those below others first."""
        ground = self.palette["sea" if self.layout.coast is not None and base_map else "land"]
        frame = (
            f'x="0.5" y="{self.top + 0.5:g}" width="{self.width - 1:g}" height="{self.height - 1:g}" rx="10"'
        )
        clip = f"clip{self.width:.0f}-{self.height:.0f}"
        self.parts.append(f'<clipPath id="{clip}"><rect {frame}/></clipPath><rect {frame} fill="{ground}"/>')
        self.parts.append(f'<g clip-path="url(#{clip})">')
        if base_map:
            self._draw_map()
        self._draw_boxes()
        self._draw_links()
        self._draw_failed()
        self._draw_nodes()
        self._draw_pills()
        self._draw_names()
        self.parts.append(f'</g><rect {frame} fill="none" stroke="{self.palette["box"]}"/>')
        says = [coverage_text(self.loss_labels, self.network.last)]
        if self.network.left_out:
            says.append(f"{counted(self.network.left_out, 'links with smaller values', 'are')} not drawn")
        if any(says):
            words = "; ".join(filter(None, says))
            words = words[0].upper() + words[1:]
            self.parts.append(
                text_element(12, self.top + self.height - 12, words, 12.5, self.palette["muted"])
            )

    def _draw_map(self) -> None:
        coast, limits = self.layout.coast, self.layout.limits
        if coast is None or limits is None:
            return
        step = COAST_STEP * self.unit
        corner = np.array(limits[:2]) * self.unit + self.origin
        for lines, close, style in (
            (coast.land, "Z", f'fill="{self.palette["land"]}" stroke="{self.palette["coast"]}"'),
            (
                coast.borders,
                "",
                f'fill="none" stroke="{self.palette["border"]}" stroke-dasharray="4 3"',
            ),
        ):
            paths = [
                _path(line * step + corner) + close for line in lines if self._is_seen(line * step + corner)
            ]
            self.parts.append(
                f'<path d="{"".join(paths)}" {style} stroke-width="0.9" stroke-linejoin="round"/>'
            )

    def _is_seen(self, points: NDArray[np.float64]) -> bool:
        low, high = points.min(axis=0), points.max(axis=0)
        return bool(
            high[0] >= 0 and low[0] <= self.width and high[1] >= self.top and low[1] <= self.top + self.height
        )

    def _draw_boxes(self) -> None:
        """Add the boxes of groups, such as pods; nodes on a map are coloured instead."""
        if self.layout.coast is not None or "group" not in self.network.nodes:
            return
        groups = self.network.nodes["group"].fillna("").astype(str).to_numpy()
        margin = 26 * self.thickness
        for name in pd.unique(groups):
            if not name:
                continue
            here = self.places[groups == name]
            (x_min, top), (right, bottom) = here.min(axis=0) - margin, here.max(axis=0) + margin
            self.parts.append(
                f'<rect x="{x_min:.1f}" y="{top:.1f}" width="{right - x_min:.1f}" '
                f'height="{bottom - top:.1f}" '
                f'rx="10" fill="{self.palette["sea"]}" stroke="{self.palette["box"]}"/>'
            )
            if text_width(name, 12) < right - x_min + 14:
                self.parts.append(
                    text_element(x_min + 4, top - 4, name, 12, self.palette["muted"], weight=600)
                )
                self.taken.append((x_min, top - 16, x_min + text_width(name, 12), top))

    def _draw_links(self) -> None:
        gone = np.zeros(len(self.tail), bool)
        gone[self.gone] = True
        order = np.argsort(np.where(self.band < 0, -1, self.band), kind="stable")
        shown = [i for i in order.tolist() if not gone[i]]
        layers: dict[tuple[int, str], list[int]] = {}
        for i in shown:
            layers.setdefault((int(self.band[i]), f"{self.strip_width[i]:.1f}"), []).append(i)
        for (band, width), links in layers.items():
            colour = self.palette["unknown"] if band < 0 else self.palette["bands"][band]
            self._draw_strips(links, colour, width, is_titled=len(shown) <= MAX_TITLED_LINKS)

    def _draw_strips(self, links: list[int], colour: str, width: str, *, is_titled: bool) -> None:
        """Add links of one colour and width: titled each, or all as one path; and their arrows."""
        lines = [f"M{_pair(self.start[i])}L{_pair(self.end[i])}" for i in links]
        style = f'stroke="{colour}" stroke-width="{width}"'
        if is_titled:
            self.parts.append(f"<g {style}>")
            self.parts += [
                f'<path d="{line}"><title>{escape_text(self._facts(i))}</title></path>'
                for i, line in zip(links, lines, strict=True)
            ]
            self.parts.append("</g>")
        else:
            self.parts.append(f'<path d="{"".join(lines)}" {style}/>')
        arrows = "".join(self._arrow(i) for i in links if self.length[i] > 46 and self.values.iloc[i] != 0)
        if arrows and self.network.last.directed:
            self.parts.append(f'<path d="{arrows}" fill="{colour}"/>')

    def _facts(self, link: int) -> str:
        drawing = self.network.last
        row = self.network.links.iloc[link]
        value = self.values.iloc[link]
        sign = "→" if drawing.directed else "–"
        words = [f"{self.labels[self.tail[link]]} {sign} {self.labels[self.head[link]]}"]
        words.append(f"{drawing.value} {'unknown' if pd.isna(value) else _with_unit(value, drawing.unit)}")
        if "lost" in row and row["lost"] > 0:
            words.append(f"lost {amount_or_number(float(row['lost']), drawing.lost_unit)}")
        if "width" in row and pd.notna(row["width"]):
            words.append(f"capacity {amount_or_number(float(row['width']), drawing.width_unit)}")
        if "note" in row and isinstance(row["note"], str) and row["note"]:
            words.append(row["note"])
        return "\n".join(words)

    def _arrow(self, i: int) -> str:
        way = (self.end[i] - self.start[i]) / self.length[i]
        aside = np.array([-way[1], way[0]])
        size = 2.6 + self.strip_width[i]
        middle = self.start[i] + 0.58 * (self.end[i] - self.start[i])
        corners = [
            middle + way * size,
            middle - way * size * 0.8 + aside * size * 0.75,
            middle - way * size * 0.8 - aside * size * 0.75,
        ]
        return _path(np.array(corners)) + "Z"

    def _draw_failed(self) -> None:
        """Draw links that failed; where links are no elements, such as flows, absent ones have not failed."""
        failed = self.gone if self.network.last.link_kind else []
        ends = {frozenset((int(self.tail[i]), int(self.head[i]))): i for i in failed}
        self.crosses = [(self.places[self.tail[i]] + self.places[self.head[i]]) / 2 for i in ends.values()]
        lines = [
            f"M{_pair(self.places[self.tail[i]])}L{_pair(self.places[self.head[i]])}" for i in ends.values()
        ]
        if lines:
            self.parts.append(
                f'<path d="{"".join(lines)}" fill="none" stroke="{self.palette["ink"]}" stroke-width="1.8" '
                'stroke-dasharray="2 4"/>'
            )

    def _draw_nodes(self) -> None:
        palette, drawing = self.palette, self.network.last
        node_rows = self.network.nodes_of(drawing)
        band = (
            node_scale(drawing).bands(node_rows["value"])
            if "value" in node_rows
            else np.full(len(self.names), -1)
        )
        codes, groups = None, pd.Index([])
        if "group" in self.network.nodes and self.layout.coast is not None:
            codes, groups = pd.factorize(self.network.nodes["group"].fillna("").astype(str))
        self.lost = (
            node_rows["lost"].fillna(0.0).to_numpy(float)
            if "lost" in node_rows
            else np.zeros(len(self.names))
        )
        for i, (x, y) in enumerate(self.places):
            fill, stroke = palette["paper"], palette["ink"]
            if band[i] >= 0:
                fill, stroke = palette["bands"][band[i]], palette["paper"]
            elif codes is not None and codes.max() > 0 and groups[codes[i]]:
                fill, stroke = palette["groups"][codes[i] % len(palette["groups"])], palette["paper"]
            circle = f'cx="{x:.1f}" cy="{y:.1f}"'
            self.parts.append(
                f'<circle {circle} r="{self.radius[i]:.1f}" fill="{fill}" stroke="{stroke}" '
                f'stroke-width="{max(0.6, 1.4 * min(1.0, self.thickness)):.1f}"/>'
            )
            if self.lost[i] > 0:
                self.parts.append(
                    f'<circle {circle} r="{self.radius[i] + 3:.1f}" fill="none" stroke="{palette["lost"]}" '
                    'stroke-width="2"/>'
                )
        is_gone = np.zeros(len(self.names), bool)
        is_gone[self.gone_nodes] = True
        self.crosses += [self.places[i] for i in np.flatnonzero(is_gone)]
        self._draw_crosses()

    def _draw_crosses(self) -> None:
        """Add a disc with a cross at each failed node and link, smaller where there are many."""
        palette = self.palette
        size = 5.0 if len(self.crosses) > 12 else 9.0
        for x, y in self.crosses:
            arm = size * 0.36
            self.parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" fill="{palette["ink"]}"/>'
                f'<path d="M{x - arm:.1f} {y - arm:.1f}l{2 * arm:.1f} {2 * arm:.1f}m0 {-2 * arm:.1f}'
                f'l{-2 * arm:.1f} {2 * arm:.1f}" stroke="{palette["land"]}" stroke-width="{size / 4.5:.1f}"/>'
            )
            self.taken.append((x - size - 2, y - size - 2, x + size + 2, y + size + 2))

    def _draw_pills(self) -> None:
        """Add the losses by amount, then the highest overloads."""
        drawing = self.network.last
        edges = (0.0, float(self.width))
        losses = self._losses()
        self.loss_labels = place_labels(
            losses,
            drawing.lost_unit,
            width_of=lambda text: text_width(text, 12) * BOLD + 14,
            taken=self.taken,
            edges=edges,
        )
        for label in self.loss_labels:
            self._draw_pill(label.text, label.box)
        threshold = math.inf if drawing.limit is None else PILL_FROM * drawing.limit
        over = self.values.fillna(-1.0).to_numpy(float)
        drawn = len(self.loss_labels)
        for i in np.argsort(-over, kind="stable"):
            if over[i] < threshold or drawn >= MAX_PILLS:
                break
            x, y = (self.start[i] + self.end[i]) / 2
            text = _with_unit(over[i], drawing.unit)
            half = text_width(text, 12) * BOLD / 2 + 7
            box = (x - half, y - HALF_HEIGHT, x + half, y + HALF_HEIGHT)
            if self.lost_links[i] <= 0 and not any(overlap(box, other) for other in self.taken):
                self._draw_pill(text, box)
                drawn += 1

    def _losses(self) -> list[Loss]:
        """Return the losses at nodes and links with their places."""
        drawing = self.network.last
        verbs = [text.partition(" (")[0] for text in drawing.losses_of(self.network.nodes_of(drawing))]
        at_nodes = [
            _loss_at(self.places[i], float(self.radius[i]), float(self.lost[i]), verbs[i])
            for i in np.flatnonzero(self.lost > 0)
        ]
        links = self.network.links_of(drawing)
        self.lost_links = (
            links["lost"].fillna(0.0).to_numpy(float)
            if "lost" in links and not drawing.lost_twice
            else np.zeros(len(links))
        )
        middle = (self.start + self.end) / 2
        return at_nodes + [
            _loss_at(middle[i], 0.0, float(self.lost_links[i]), "lost")
            for i in np.flatnonzero(self.lost_links > 0)
        ]

    def _draw_pill(self, text: str, box: Box) -> None:
        middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        self.parts.append(
            f'<rect x="{box[0]:.1f}" y="{box[1]:.1f}" width="{box[2] - box[0]:.1f}" height="19" rx="9.5" '
            f'fill="{self.palette["lost"]}"/>'
            + text_element(
                middle[0], middle[1] + 4.2, text, 12, self.palette["land"], weight=700, anchor="middle"
            )
        )
        self.taken.append(box)

    def _is_crossed(self, box: Box, node: int) -> bool:
        """Return whether a link goes through a box: one of its node, or any where there are few."""
        count = len(self.tail)
        near = np.ones(count, bool) if count <= FEW_LINKS else (self.tail == node) | (self.head == node)
        near[self.gone] = False
        start, step = self.start[near], (self.end - self.start)[near]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(np.array(corner) - start) / step for corner in (box[:2], box[2:])])
        inside = (start >= box[:2]) & (start <= box[2:])
        ends[0] = np.where(step == 0, np.where(inside, -np.inf, np.inf), ends[0])
        ends[1] = np.where(step == 0, np.inf, ends[1])
        enters, leaves = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
        return bool((np.maximum(enters, 0.0) <= np.minimum(leaves, 1.0)).any())

    def _order_names(self) -> tuple[list[int], set[int]]:
        """Return the nodes in the order in which they get names, and those whose names may cover others.

        Those of failures and of losses come first, then the others by their links and sizes.
        """
        degree = np.bincount(np.r_[self.tail, self.head], minlength=len(self.names))
        weight = degree + 100 * (self.radius / self.radius.max() if "size" in self.network.nodes else 0)
        failed = self.gone if self.network.last.link_kind else []
        ends = [end for i in failed for end in (int(self.tail[i]), int(self.head[i]))]
        losing = [i for i in np.argsort(-self.lost, kind="stable").tolist() if self.lost[i] > 0]
        first = [*self.gone_nodes, *ends, *losing]
        return list(dict.fromkeys([*first, *np.argsort(-weight, kind="stable").tolist()])), set(first)

    def _place_name(self, node: int, grid: _Cells, discs: _Cells, *, may_cover: bool) -> Box | None:
        """Return the box of a node's name, clear of links where it can be; None where there is no space.

        grid       boxes of what is drawn already
        discs      boxes of nodes
        may_cover  whether the name may cover other nodes
        """
        wide = text_width(self.labels[node], 13)
        beside = _beside(self.places[node], self.radius[node] + 4, wide)
        boxes = [
            (left_edge - 1, middle - 7, left_edge + wide + 1, middle + 7) for left_edge, middle in beside
        ]
        wider = wide * (BOLD - 1)  # of a reader's font that has wider letters
        inside = [box for box in boxes if self._is_inside((*box[:2], box[2] + wider, box[3]))]
        free = [box for box in inside if not grid.hits(box)]
        clear = [box for box in free if not discs.hits(box)]
        if not clear:
            return free[0] if free and may_cover else None
        return next((box for box in clear if not self._is_crossed(box, node)), clear[0])

    def _draw_names(self) -> None:
        """Add names beside their nodes without overlap: those of failed ones first, then by degree."""
        order, first = self._order_names()
        grid = _Cells()
        for box in self.taken:
            grid.add(box)
        discs = _Cells()  # nodes: only the names of what failed may cover others
        for (x, y), radius in zip(self.places, np.maximum(self.radius - 1, 0.5), strict=True):
            discs.add((x - radius, y - radius, x + radius, y + radius))
        limit = float(np.clip(self.width * self.height / NAME_AREA, 20, MAX_NAMES))
        halo = self.palette["land" if self.layout.coast is not None else "sea"]
        names: list[str] = []
        for i in order:
            if len(names) > limit:
                break
            best = self._place_name(i, grid, discs, may_cover=i in first)
            if best is not None:
                names.append(
                    f'<text x="{best[0] + 1:.1f}" y="{best[1] + 11.3:.1f}">'
                    f"{escape_text(self.labels[i])}</text>"
                )
                grid.add(best)
        self.parts.append(
            f'<g font-size="13" font-weight="600" fill="{self.palette["ink"]}" stroke="{halo}" '
            f'stroke-width="3" stroke-linejoin="round" paint-order="stroke">{"".join(names)}</g>'
        )

    def _is_inside(self, box: Box) -> bool:
        bottom = self.top + self.height - 2
        return box[0] > 2 and box[2] < self.width - 2 and box[1] > self.top + 2 and box[3] < bottom


class _Cells:
    """Boxes by the cells of a grid that they lie in."""

    SIZE = 64.0

    def __init__(self) -> None:
        self.boxes: dict[tuple[int, int], list[Box]] = {}

    def _cells(self, box: Box) -> Iterator[tuple[int, int]]:
        for i in range(int(box[0] // self.SIZE), int(box[2] // self.SIZE) + 1):
            for j in range(int(box[1] // self.SIZE), int(box[3] // self.SIZE) + 1):
                yield i, j

    def add(self, box: Box) -> None:
        """Add a box that others should not overlap."""
        for cell in self._cells(box):
            self.boxes.setdefault(cell, []).append(box)

    def hits(self, box: Box) -> bool:
        """Return whether a box overlaps one that was added."""
        return any(overlap(box, other) for cell in self._cells(box) for other in self.boxes.get(cell, ()))


def _loss_at(position: NDArray[np.float64], radius: float, amount: float, words: str) -> Loss:
    """Return a loss at a position."""
    return Loss(x=float(position[0]), y=float(position[1]), radius=radius, amount=amount, words=words)


def _beside(position: NDArray[np.float64], r: float, wide: float) -> tuple[tuple[float, float], ...]:
    """Return the places of a name around its node, the best first: its left edge and its middle."""
    x, y = position.tolist()
    return (
        (x + r, y),
        (x - r - wide, y),
        (x - wide / 2, y - r - 6),
        (x - wide / 2, y + r + 6),
        (x + r - 2, y - 11),
        (x + r - 2, y + 11),
        (x - r - wide + 2, y - 11),
        (x - r - wide + 2, y + 11),
    )


def _pair(point: NDArray[np.float64]) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _path(points: NDArray[np.float64]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points.tolist())


def _with_unit(value: float, unit: str) -> str:
    return f"{number(float(f'{value:.3g}') if abs(value) >= 100 else value)} {unit}".rstrip()


def _shortened(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"
