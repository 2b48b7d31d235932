"""What a session holds: its folder, its workers' questions, its answers."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner.errors import InputError
from planner_dashboard.jobs import LONGEST_S, Job, Workers

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


@dataclass(eq=False)
class _Home:
    """A folder that is gone with its session."""

    path: Path

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def folder() -> Path:
    """The session's own folder, gone with the session."""
    if "home" not in st.session_state:
        st.session_state["home"] = _Home(Path(tempfile.mkdtemp(dir=_root())))
    home: _Home = st.session_state["home"]
    return home.path


def stores() -> list[Path]:
    """The stores that the command named: a page opens no others."""
    return [Path(text) for text in os.environ.get(STORES, "").split(os.pathsep) if text]


# --- questions ----------------------------------------------------------------------------


@dataclass(eq=False)
class _Later:
    """A question that is put once its page is there: the first one starts the workers."""

    ask: Callable[[], Job]
    shown: bool = False

    def cancel(self) -> None:
        """It was never put."""


def put(name: str, function: Callable[..., Any], *given: Any, longest_s: float = LONGEST_S) -> None:
    """Ask the workers; what was asked by that name before is of no use any more."""
    withdraw(name)
    ask = partial(workers().ask, function, *given, longest_s=longest_s)
    st.session_state[f"job {name}"] = ask() if workers().started else _Later(ask)


def withdraw(name: str) -> None:
    """Cancel what was asked by that name, if it is on its way."""
    job: Job | _Later | None = st.session_state.pop(f"job {name}", None)
    if job is not None:
        job.cancel()


def is_asked(name: str) -> bool:
    """Whether something was asked by that name and is not answered yet."""
    return f"job {name}" in st.session_state


def answer(name: str) -> Any:
    """What came of the question of that name; None while it is on its way, or where none was put.

    raises  PlannerError where it failed or was cancelled
    """
    job: Job | _Later | None = st.session_state.get(f"job {name}")
    if not isinstance(job, Job) or job.running:
        return None
    del st.session_state[f"job {name}"]
    return job.answer()


def progress(name: str, what: str, hint: str = "cancelled") -> None:
    """How long the question of that name is on its way, and a button that cancels it.

    hint  what is said when it was cancelled
    """

    @st.fragment(run_every=0.2)
    def shown() -> None:
        job: Job | _Later | None = st.session_state.get(f"job {name}")
        if isinstance(job, _Later):
            if not job.shown:
                job.shown = True
                st.progress(0.0, text="starting")
                return
            job = st.session_state[f"job {name}"] = job.ask()
        if job is None or not job.running:
            st.rerun()
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            text = "waiting for a free worker" if job.waiting else what
            far = told(name)
            st.progress(
                min(0.99, job.seconds / (job.seconds + 5)) if far is None else far,
                text=f"{text}, {job.seconds:.0f} s",
            )
            if st.button("Cancel", key=f"cancel {name}"):
                withdraw(name)
                st.session_state[f"trouble {name}"] = InputError(hint)
                st.rerun()

    shown()


def told(name: str) -> float | None:
    """How far the question of that name is, where its worker tells: 0 to 1."""
    path = folder() / f"{name}.progress"
    try:
        done, _, total = path.read_text().partition("/")
        return min(0.99, int(done) / int(total)) if int(total) else None
    except (OSError, ValueError):
        return None


# --- words --------------------------------------------------------------------------------


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
