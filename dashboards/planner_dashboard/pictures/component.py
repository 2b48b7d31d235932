"""The two streamlit components of a picture: one for its constant parts, one for its values."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

import streamlit as st

from planner.reports.network_scale import PALETTES
from planner_dashboard.pictures.selection import Selected, read_selected

SCRIPTS: Final = (
    "shared.js",
    "board.js",
    "view.js",
    "scene.js",
    "state.js",
    "labels.js",
    "paint.js",
    "player.js",
    "network.js",
    "timeline.js",
    "registry.js",
)
"""Put together into one script, in this order."""


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _constant(name: str, value: Any) -> str:
    return f"const {name} = {json.dumps(value)};\n"


# registered once, at import; a script of a single line would be taken for the name of a file
_geometry_component: Final[Callable[..., Any]] = st.components.v2.component(
    "planner.picture_geometry",
    js=_constant("STYLE", _read("pictures.css"))
    + _constant("PALETTES", PALETTES)
    + "".join(map(_read, SCRIPTS)),
)
_values_component: Final[Callable[..., Any]] = st.components.v2.component(
    "planner.picture", js=_read("shared.js") + _read("values.js")
)


def show_component(key: str, name: str, geometry: str, data: dict[str, Any]) -> Selected | None:
    """Show a picture; return the user's selection in it since the page's last run.

    name      of the geometry; a page that has a geometry of this name does not need another one
    geometry  JSON text, sent only where it has changed; "" for none
    data      what the picture shows, sent at each change
    """
    with st.container(gap=None):
        _geometry_component(key=f"{key} geometry", data={"key": key, "id": name, "geometry": geometry})
        answer = _values_component(key=key, data={"key": key, "id": name, **data}, on_picked_change=_accept)
    return read_selected(answer.picked)


def _accept() -> None:
    """Do nothing: a component's event reaches the page's next run only if it has a callback."""
