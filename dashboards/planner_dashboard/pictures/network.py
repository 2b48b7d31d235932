"""Pictures of a network in which elements can be selected: one plan, a change of plans, plans over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from planner.contract.drawing import NetworkMap
from planner.reports.joined_network import JoinedNetwork, join
from planner_dashboard.pictures import payload
from planner_dashboard.pictures.component import geometry_component, values_component
from planner_dashboard.pictures.payload import Frame, MetricCurve

HEIGHT: Final = 640


@dataclass(frozen=True)
class Selected:
    """The element that a user selected.

    kind  of the element (`ElementKind.name`)
    name  of the element; "" where the user cleared the selection
    """

    kind: str
    name: str


def show_network(
    drawing: NetworkMap,
    *,
    key: str,
    before: NetworkMap | None = None,
    selected: str = "",
    height: int = HEIGHT,
) -> Selected | None:
    """Show a network; return what the user selected in it since the page's last run.

    key       of the picture on its page; it keeps its zoom as long as the key stays
    before    the picture of another plan: links and nodes that only it has are shown as failed
    selected  name of the element that is shown as selected
    height    at most, pixels; a narrow page has less
    """
    network = join(drawing) if before is None else join(before, drawing)
    return _show(network, key, payload.values(network, selected=selected, height=height))


def show_difference(
    before: NetworkMap, after: NetworkMap, *, key: str, selected: str = "", height: int = HEIGHT
) -> Selected | None:
    """Show the change of values between two plans on one map; arguments as those of `show_network`."""
    network = join(before, after)
    return _show(network, key, payload.differences(network, selected=selected, height=height))


def show_frames(
    frames: Sequence[Frame],
    *,
    key: str,
    curve: MetricCurve | None = None,
    selected: str = "",
    height: int = HEIGHT,
) -> Selected | None:
    """Show a player of moments, all sent at once, with the curve of a metric below it."""
    network = join(*(frame.drawing for frame in frames))
    return _show(network, key, payload.frames_data(network, frames, curve, selected=selected, height=height))


def _show(network: JoinedNetwork, key: str, data: payload.Data) -> Selected | None:
    name, geometry = payload.geometry(network)
    with st.container(gap=None):
        geometry_component(key=f"{key} geometry", data={"key": key, "id": name, "geometry": geometry})
        answer = values_component(key=key, data={"key": key, "id": name, **data}, on_picked_change=_accept)
    return _selected(answer.picked)


def _accept() -> None:
    """Do nothing: a component's event reaches the page's next run only if it has a callback."""


def _selected(picked: Any) -> Selected | None:
    return Selected(str(picked["kind"]), str(picked["name"])) if picked else None
