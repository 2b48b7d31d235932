"""Labels of users' losses on a picture: the largest amounts, and sums in place of labels that overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.contract.drawing import NetworkMap
from planner.formatting import amount_or_number, percent

WIDTH_PER_LABEL: Final = 80.0
MIN_LABELS, MAX_LABELS = 5, 12
"""On one picture; the amounts that none of them covers are the smallest."""
ENOUGH: Final = 0.9
"""Share of what is lost: labels that follow those with so much of it are not drawn."""
MOST_ALIKE: Final = 3
"""Labels that are drawn even where fewer of them have enough."""
HALF_HEIGHT: Final = 9.5
GAP: Final = 5.0
"""Pixels between a node's circle and its label."""
ALL: Final = 0.9995
"""Share from which a sentence says that labels cover all."""
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Loss:
    """An amount that is lost at a point of the picture.

    radius  of the circle at the point
    words   verb of the loss: "lost", "not served"
    """

    x: float
    y: float
    radius: float
    amount: float
    words: str


@dataclass(frozen=True)
class Label:
    """A label at the largest of the losses that it gives the sum of."""

    losses: tuple[Loss, ...]
    text: str
    box: Box

    @property
    def amount(self) -> float:
        """The sum of the losses."""
        return sum(loss.amount for loss in self.losses)


def place_labels(
    losses: Sequence[Loss],
    unit: str,
    *,
    width_of: Callable[[str], float],
    taken: Sequence[Box] = (),
    edges: tuple[float, float],
) -> list[Label]:
    """Return the labels of some losses, the largest first, one for each group of labels that overlap.

    width_of  width of a text, pixels
    taken     boxes that labels avoid where they can
    edges     left and right end of the picture
    """
    labels: list[Label] = []
    say_verbs = len({loss.words for loss in losses}) > 1
    for loss in sorted(losses, key=lambda loss: -loss.amount):
        members: tuple[Loss, ...] = (loss,)
        label = _label(members, unit, say_verbs, width_of, taken, edges)
        while hit := next((other for other in labels if overlap(other.box, label.box)), None):
            labels.remove(hit)
            members = (*hit.losses, *members)
            label = _label(members, unit, say_verbs, width_of, taken, edges)
        labels.append(label)
    return _largest(labels, edges[1] - edges[0])


def _largest(labels: Sequence[Label], width: float) -> list[Label]:
    """Return the largest labels: as many as have enough of the amount, and as a picture's width allows."""
    ordered = sorted(labels, key=lambda label: -label.amount)
    amounts = np.array([label.amount for label in ordered])
    before = np.cumsum(amounts) - amounts
    many = max(int((before < ENOUGH * amounts.sum()).sum()), MOST_ALIKE)
    return ordered[: min(many, round(min(max(width / WIDTH_PER_LABEL, MIN_LABELS), MAX_LABELS)))]


def _label(
    losses: tuple[Loss, ...],
    unit: str,
    say_verbs: bool,
    width_of: Callable[[str], float],
    taken: Sequence[Box],
    edges: tuple[float, float],
) -> Label:
    """Return the label of a group of losses: above the largest of them, or where nothing else is."""
    text = label_text(losses, unit, say_verbs=say_verbs)
    first, half = max(losses, key=lambda loss: loss.amount), width_of(text) / 2
    away = first.radius + GAP
    boxes = []
    for dx, dy in ((0.0, -1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 0.0)):
        low, high = edges[0] + half + 2, edges[1] - half - 2
        x = min(max(first.x + dx * (away + half), low), max(high, low))  # within the picture
        y = first.y + dy * (away + HALF_HEIGHT)
        boxes.append((x - half, y - HALF_HEIGHT, x + half, y + HALF_HEIGHT))
    free = (box for box in boxes if not any(overlap(box, other) for other in taken))
    return Label(losses=losses, text=text, box=next(free, boxes[0]))


def label_text(losses: Sequence[Loss], unit: str, *, say_verbs: bool) -> str:
    """Return the text of a label, with the number of losses in it: `1.5 Gbit/s`, `12.4 Gbit/s lost (7)`."""
    parts = [amount_or_number(sum(loss.amount for loss in losses), unit)]
    if say_verbs:
        parts.append(join_verbs(loss.words for loss in losses))
    if len(losses) > 1:
        parts.append(f"({len(losses)})")
    return " ".join(parts)


def coverage_text(labels: Sequence[Label], drawing: NetworkMap) -> str:
    """Return the share of all losses that labels give: `labels cover 93% of the 14.2 Gbit/s that is lost`."""
    nodes, links = drawing.amounts_lost()
    total = float(nodes.sum() + links.sum())
    if total <= 0:
        return ""
    share = sum(label.amount for label in labels) / total
    covered = "" if share >= ALL else f"{percent(share, 0)} of "
    amount = amount_or_number(total, drawing.lost_unit)
    brackets = ", in brackets the number of places" if any(len(label.losses) > 1 for label in labels) else ""
    return f"labels cover {covered}the {amount} that {lost_verb(drawing)}{brackets}"


def lost_verb(drawing: NetworkMap) -> str:
    """Return the verb for all losses of a drawing: `is lost`, `are lost or not served`."""
    nodes, links = drawing.amounts_lost()
    verbs = [
        words.partition(" (")[0]
        for words in np.array(drawing.losses_of(drawing.nodes), dtype=object)[nodes > 0]
    ]
    verbs += ["lost"] * bool((links > 0).any())
    is_singular = drawing.lost_noun in ("traffic", "data") or float(nodes.sum() + links.sum()) == 1.0
    return ("is " if is_singular else "are ") + join_verbs(verbs)


def join_verbs(verbs: Iterable[str]) -> str:
    """Return the verbs of several losses, each once: `not served or at a lower bitrate`."""
    return " or ".join(dict.fromkeys(verb for words in verbs for verb in words.split(" or ")))


def overlap(a: Box, b: Box) -> bool:
    """Return whether two boxes overlap."""
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
