"""What a session holds: its folder, its workers' questions, its answers."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner_dashboard.jobs import Workers

WORKERS: Final = "PLANNER_DASHBOARD_WORKERS"
MEMORY_MB: Final = "PLANNER_DASHBOARD_MEMORY_MB"
STORES: Final = "PLANNER_DASHBOARD_STORES"


@st.cache_resource(show_spinner=False)
def workers() -> Workers:
    """The server's worker processes, started with its first session."""
    count = int(os.environ.get(WORKERS) or min(4, max(1, (os.cpu_count() or 2))))
    made = Workers(count, int(os.environ.get(MEMORY_MB) or 2048))
    atexit.register(made.close)
    return made


@st.cache_resource(show_spinner=False)
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="planner-dashboard-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


def folder() -> Path:
    """The session's own folder, gone with the server."""
    if "folder" not in st.session_state:
        st.session_state["folder"] = Path(tempfile.mkdtemp(dir=_root()))
    return Path(st.session_state["folder"])


def stores() -> list[Path]:
    """The stores that the command named: a page opens no others."""
    return [Path(text) for text in os.environ.get(STORES, "").split(os.pathsep) if text]


def said(error: Any) -> None:
    """A failure, a line for each fault, as text and nothing else."""
    lines = str(error).splitlines() or [type(error).__name__]
    for line in lines[:8]:
        st.error(plain(line))
    if len(lines) > 8:
        st.error(f"and {len(lines) - 8} more")


def plain(text: str) -> str:
    """Text that markdown shows as it is."""
    return "".join("\\" + letter if letter in "\\`*_{}[]()#+-.!|<>$~:" else letter for letter in text)
