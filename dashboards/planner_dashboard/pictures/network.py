"""The picture of a network: a map, tiers or a fabric, in which links and nodes can be selected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import streamlit as st

from planner.contract.drawing import NetworkMap
from planner_dashboard.pictures import payload
from planner_dashboard.pictures.component import geometry_component, values_component

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
    parts = payload.parts_of(drawing, before)
    geometry = json.loads(payload.geometry(parts, drawing))
    data = payload.values(parts, drawing, before, selected, height)
    with st.container(gap=None):
        geometry_component(key=f"{key} geometry", data={"key": key, "geometry": geometry})
        answer = values_component(
            key=key, data={"key": key, "geometry": geometry["id"], **data}, on_picked_change=_accept
        )
    return _selected(answer.picked)


def _accept() -> None:
    """Do nothing: a component's event reaches the page's next run only if it has a callback."""


def _selected(picked: Any) -> Selected | None:
    return Selected(str(picked["kind"]), str(picked["name"])) if picked else None
