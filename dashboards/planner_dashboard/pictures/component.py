"""The two streamlit components of a picture: one for what seldom changes, one for its values."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

import streamlit as st

from planner.reports.network_scale import PALETTES

SCRIPTS: Final = ("view.js", "scene.js", "state.js", "paint.js", "player.js", "picture.js")
"""Put together into one script, in this order."""


def _read(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _constant(name: str, value: Any) -> str:
    return f"const {name} = {json.dumps(value)};\n"


# registered once, at import; a script of a single line would be taken for the name of a file
geometry_component: Final[Callable[..., Any]] = st.components.v2.component(
    "planner.picture_geometry",
    js=_constant("STYLE", _read("pictures.css"))
    + _constant("PALETTES", PALETTES)
    + "".join(map(_read, SCRIPTS)),
)
values_component: Final[Callable[..., Any]] = st.components.v2.component(
    "planner.picture", js=_read("values.js")
)
