"""The picture of an answer: one plan, or two of them as a difference or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from planner.contract.drawing import Curve, Drawing, NetworkMap, Timeline
from planner.contract.metrics import Metric
from planner.contract.system import System
from planner.formatting import amount_or_number, counted, number
from planner_dashboard import pictures, rendering, session
from planner_dashboard.rendering import shown_name
from planner_dashboard.worker import Answer, DesignAnswer

HEIGHT: Final = 640
"""Pixels of the picture."""
WITH_PURCHASES, BEFORE_PURCHASES = "With purchases", "Before"
DIFFERENCE, BESIDE = "Difference", "Side by side"
MOST_SENTENCES: Final = 3
SAME_SHARE: Final = 0.005
"""Part of the largest value up to which the value of a link counts as unchanged."""


@dataclass(frozen=True)
class Plan:
    """A design's plan in an answer; `name` says which one beside others."""

    name: str
    answer: Answer
    design: DesignAnswer


def show_plan(
    answer: Answer,
    design: DesignAnswer,
    selected: tuple[str, str] | None,
    moment: str = WITH_PURCHASES,
) -> tuple[str, str] | None:
    """Show the picture of a plan; return the kind and the name of the element that a click has selected.

    moment  with what the plan buys, or before
    """
    if design.picture is None:
        st.caption(
            "This design has no plan to draw." if not design.has_plan else "There is no picture of it."
        )
        return None
    key = f"picture {answer.question.scenario} {design.label}"
    drawing: Drawing = design.picture
    if moment == BEFORE_PURCHASES and isinstance(drawing, NetworkMap):
        drawing = before_purchases(drawing)
    return _show(drawing, key, before=answer.whole, selected=selected)


def is_clickable(design: DesignAnswer) -> bool:
    """Return whether a click on the picture of a plan selects an element."""
    return isinstance(design.picture, NetworkMap | Timeline)


def has_purchases(design: DesignAnswer) -> bool:
    """Return whether a plan buys a part of the links in its picture."""
    drawing = design.picture
    if not isinstance(drawing, NetworkMap) or "added" not in drawing.links:
        return False
    return bool((drawing.links["added"] > 0).any())


def before_purchases(drawing: NetworkMap) -> NetworkMap:
    """Return the network without the plan's purchases: links as wide as before, their load unknown."""
    links = drawing.links
    before = (links["width"] - links["added"]).clip(lower=0.0)
    notes = [amount_or_number(width, drawing.width_unit) if width > 0 else "not built" for width in before]
    return replace(
        drawing,
        title="Before the purchases, by capacity",
        widest=float(links["width"].max()),
        links=links.assign(width=before, added=0.0, value=np.nan, note=notes),
        nodes=drawing.nodes.drop(columns=["lost", "lost_as"], errors="ignore"),
    )


def _show(
    drawing: Drawing, key: str, *, before: Drawing | None = None, selected: tuple[str, str] | None = None
) -> tuple[str, str] | None:
    name = selected[1] if selected else ""
    if isinstance(drawing, NetworkMap):
        map_before = before if isinstance(before, NetworkMap) else None
        click = pictures.show_network(drawing, key=key, before=map_before, selected=name, height=HEIGHT)
    elif isinstance(drawing, Timeline):
        click = pictures.show_timeline(drawing, key=key, selected=name, height=HEIGHT)
    else:
        rendering.show_drawing(drawing, key)
        return None
    return None if click is None else (click.kind, click.name)


def show_two(before: Plan, after: Plan, mode: str) -> None:
    """Show two plans as a difference on one map, or side by side."""
    first, two = before.design.picture, after.design.picture
    if first is None or two is None:
        st.caption("One of the two plans has no picture.")
        return
    two = with_series_of(first, two)
    key = f"two {before.name} {after.name} {after.answer.question.scenario}"
    if mode == DIFFERENCE and isinstance(first, NetworkMap) and isinstance(two, NetworkMap):
        st.caption(session.escape_markdown(_begin(f"{after.name}, compared with {before.name}")))
        pictures.show_difference(first, two, key=key, height=HEIGHT)
        return
    if mode == DIFFERENCE and isinstance(first, Timeline) and isinstance(two, Timeline):
        st.caption(session.escape_markdown(_begin(f"{after.name}, and {before.name} faint below it")))
        pictures.show_timeline(two, key=key, before=first, height=HEIGHT)
        return
    drawn = ((before, first), (after, two))
    for index, (column, (plan, drawing)) in enumerate(zip(st.columns(2), drawn, strict=True)):
        with column:
            st.caption(session.escape_markdown(_begin(f"{plan.name}: {plan.design.headline}")))
            _show(drawing, f"{key} {index}", before=plan.answer.whole)


def _begin(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def with_series_of(first: Drawing, second: Drawing) -> Drawing:
    """Return the second of two drawings with its series in the order of the first, so that colours agree."""
    if not isinstance(first, Curve) or not isinstance(second, Curve):
        return second
    axis, *series = second.frame.columns
    order = [name for name in first.frame.columns[1:] if name in series]
    order += [name for name in series if name not in order]
    return replace(second, frame=second.frame[[axis, *order]])


# --- what changed -------------------------------------------------------------------------


def modes_of(before: Plan, after: Plan) -> list[str]:
    """Return the ways to compare two plans: as a difference only on one map, or on one timeline."""
    drawings = before.design.picture, after.design.picture
    is_drawn = any(all(isinstance(drawing, kind) for drawing in drawings) for kind in (NetworkMap, Timeline))
    has_difference = is_drawn and is_same_network(before.answer, after.answer)
    return [DIFFERENCE, BESIDE] if has_difference else [BESIDE]


def is_same_network(first: Answer, second: Answer) -> bool:
    """Return whether two answers are about one scenario, so that their plans have a difference on one map."""
    return (first.question.scenario, first.question.upload) == (
        second.question.scenario,
        second.question.upload,
    )


def describe_difference(system: System, before: Plan, after: Plan) -> list[str]:
    """Return the changes from one plan to another, in sentences: metrics first, then links."""
    metrics_before, two = before.design.figures.metrics, after.design.figures.metrics
    lines = []
    for metric in dict.fromkeys([*system.ranks, *system.table_metrics]):
        was, now = metrics_before.get(metric.name), two.get(metric.name)
        # a change that the digits do not show is none for a reader
        if was is not None and now is not None and metric.text(was) != metric.text(now):
            lines.append(_change_sentence(metric, was, now))
    sentences = lines[: 2 * MOST_SENTENCES] or ["All figures are the same."]
    first, second = before.design.picture, after.design.picture
    is_same = is_same_network(before.answer, after.answer)
    if is_same and isinstance(first, NetworkMap) and isinstance(second, NetworkMap):
        sentences += _link_sentences(first, second)
    return sentences


def _change_sentence(metric: Metric, was: float, now: float) -> str:
    way = "up" if now > was else "down"
    before, after = (metric.text(value) for value in (was, now))
    # a verb that agrees with labels in the plural too, such as "Misses"
    return f"{metric.label} went {way} from {before} to {after}."


def _link_sentences(before: NetworkMap, after: NetworkMap) -> list[str]:
    """Return the numbers of links that carry more and less, and the largest changes."""
    keys = ["tail", "head", "number"]
    both = _numbered(before.links).merge(_numbered(after.links), on=keys, how="outer", suffixes=("_a", "_b"))
    was, now = (both[f"value_{side}"].to_numpy(float) for side in "ab")
    change = now - was
    threshold = SAME_SHARE * max(float(np.nanmax(np.abs([was, now]), initial=0.0)), 1e-12)
    more, less = int((change > threshold).sum()), int((change < -threshold).sum())
    gone, new = int((np.isnan(now) & ~np.isnan(was)).sum()), int((np.isnan(was) & ~np.isnan(now)).sum())
    counts = (("carry", "more", more), ("carry", "less", less), ("are", "gone", gone), ("are", "new", new))
    said = [f"{counted(count, 'links', verb)} {word}" for verb, word, count in counts if count]
    if not said:
        return [f"Every link has the same {before.value}."]
    lines = [", ".join(said) + "."]
    largest = np.argsort(-np.nan_to_num(np.abs(change)), kind="stable")[:MOST_SENTENCES]
    named = []
    for row in largest.tolist():
        if abs(np.nan_to_num(change[row])) > threshold:
            link = shown_name("->".join(both.loc[row, ["tail", "head"]].astype(str)))
            named.append(f"{link} from {number(was[row])} to {number(now[row])} {after.unit}".rstrip())
    if named:
        lines.append(f"The largest changes of {after.value}: " + "; ".join(named) + ".")
    return lines


def _numbered(links: pd.DataFrame) -> pd.DataFrame:
    """Return tail, head, the number among parallel links, and value."""
    shown = links[["tail", "head", "value"]].astype({"tail": str, "head": str})
    return shown.assign(number=shown.groupby(["tail", "head"]).cumcount())


def show_changes(system: System, before: Plan, after: Plan) -> None:
    """Show the changes from one plan to another, in words and numbers; of two systems, both headlines."""
    st.subheader("What changed", anchor=False)
    if before.answer.system != after.answer.system:
        for plan in (before, after):
            st.markdown(session.escape_markdown(_begin(f"{plan.name}: {plan.answer.verdict}")))
        return
    for line in describe_difference(system, before, after):
        st.markdown("- " + session.escape_markdown(line))
    st.html(metrics_html(system, before, after))


def metrics_html(system: System, before: Plan, after: Plan) -> str:
    """Return a table of the metrics of two plans; those that neither has are left out.

    Its cells wrap: a data frame beside the picture would hide the column of the second plan.
    """
    rows = []
    for metric in dict.fromkeys([*system.ranks, *system.table_metrics]):
        values = [plan.design.figures.metrics.get(metric.name) for plan in (before, after)]
        if any(value is not None for value in values):
            cells = "".join(f"<td>{escape(metric.text(value))}</td>" for value in values)
            rows.append(f"<tr><th scope='row'>{escape(metric.label)}</th>{cells}</tr>")
    heads = "".join(f"<th scope='col'>{head}</th>" for head in ("Metric", "Before", "Now"))
    body = f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f"<table class='planner-compared'>{body}</table>"


def designs_with_plan(answer: Answer) -> Sequence[str]:
    """Return the labels of designs that have a plan."""
    return [design.label for design in answer.designs if design.has_plan]
