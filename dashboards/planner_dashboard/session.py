"""A session: its folder, its jobs and their results."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner.errors import InputError, PlannerError
from planner.formatting import printable
from planner_dashboard import fragments, visitors
from planner_dashboard.jobs import TIME_LIMIT_S, Job, Workers
from planner_dashboard.question import say_unknown

WORKERS: Final = "PLANNER_DASHBOARD_WORKERS"
MEMORY_MB: Final = "PLANNER_DASHBOARD_MEMORY_MB"
STORES: Final = "PLANNER_DASHBOARD_STORES"
MAX_ERROR_LINES: Final = 8
FAST_POLL_S: Final = 0.15
"""Time between two looks at a job; of one that takes longer than SLOW_JOB_S, SLOW_POLL_S."""
SLOW_POLL_S: Final = 1.0
SLOW_JOB_S: Final = 4.0
WORKERS_SHARE: Final = 0.75
"""Share of the machine's memory that all workers together may use."""
MIN_MEMORY_MB: Final = 1024
CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@st.cache_resource(show_spinner=False)
def workers() -> Workers:
    """Return the server's worker processes; its first session starts them."""
    count = int(os.environ.get(WORKERS) or min(4, max(1, (os.cpu_count() or 2))))
    pool = Workers(count, int(os.environ.get(MEMORY_MB) or memory_of_worker_mb(count)))
    atexit.register(pool.close)
    return pool


def memory_of_worker_mb(count: int) -> int:
    """Return the memory limit of each of `count` workers, MB: an equal part of the machine's memory."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in CGROUP_LIMITS:
        text = path.read_text().strip() if path.is_file() else ""
        if text.isdecimal():
            machine = min(machine, int(text))
    return max(MIN_MEMORY_MB, int(machine * WORKERS_SHARE / count) >> 20)


@st.cache_resource(show_spinner=False)
def _root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="planner-dashboard-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return root


@dataclass(eq=False)
class _Folder:
    """A folder that is removed with its session."""

    path: Path

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def folder() -> Path:
    """Return the session's own folder, which is removed with the session."""
    if "folder" not in st.session_state:
        st.session_state["folder"] = _Folder(Path(tempfile.mkdtemp(dir=_root())))
    folder_: _Folder = st.session_state["folder"]
    return folder_.path


def visitor() -> str:
    """Return the visitor of the session by its browser's cookie; "" for a browser without cookies."""
    return visitors.visitor_of(st.context.cookies)


def stores() -> list[Path]:
    """Return the stores that the command named; a page opens no others."""
    return [Path(text) for text in os.environ.get(STORES, "").split(os.pathsep) if text]


# --- jobs ---------------------------------------------------------------------------------


@dataclass(eq=False)
class _DeferredJob:
    """A job that is submitted after its page is shown: the first one starts the workers."""

    submit: Callable[[], Job]
    is_shown: bool = False

    def cancel(self) -> None:
        """Do nothing: it was never submitted."""


def submit(
    name: str, function: Callable[..., Any], *arguments: Any, time_limit_s: float = TIME_LIMIT_S
) -> None:
    """Submit a job to the workers; cancel the job of the same name before it."""
    cancel(name)
    st.session_state[f"error {name}"] = None
    for ending in ("progress", "activity", "found"):  # of a cancelled job
        (folder() / f"{name}.{ending}").unlink(missing_ok=True)
    later = partial(workers().submit, function, *arguments, time_limit_s=time_limit_s)
    is_next = workers().are_started and not _is_at_limit()
    st.session_state[f"job {name}"] = later() if is_next else _DeferredJob(later)


def _is_at_limit() -> bool:
    """Return whether the session has as many jobs as it may: one worker is left to other sessions."""
    state = st.session_state
    jobs = [state[key] for key in state if isinstance(key, str) and key.startswith("job ")]
    pending = sum(isinstance(job, Job) and job.is_pending for job in jobs)
    return pending >= max(1, workers().count - 1)


def cancel(name: str) -> None:
    """Cancel the job of a name, if it is pending."""
    job: Job | _DeferredJob | None = st.session_state.pop(f"job {name}", None)
    if job is not None:
        job.cancel()


def is_pending(name: str) -> bool:
    """Return whether the job of a name is submitted and its result not yet taken."""
    return f"job {name}" in st.session_state


def take_result(name: str) -> Any:
    """Return the result of the job of a name; None while it is pending, or where there is none.

    The error of a job that failed is kept until the next one: `show_failure` shows it.
    """
    job: Job | _DeferredJob | None = st.session_state.get(f"job {name}")
    if not isinstance(job, Job) or job.is_pending:
        return None
    del st.session_state[f"job {name}"]
    try:
        return job.result()
    except PlannerError as error:
        st.session_state[f"error {name}"] = error
        return None


def show_failure(name: str) -> None:
    """Show the reason for which the last job of a name failed or was cancelled, and its partial result."""
    if st.session_state.get(f"error {name}") is None:
        return
    show_error(st.session_state[f"error {name}"])
    if text := _read(f"{name}.found"):
        st.text("\n".join(["Found before:", *map(printable, text.splitlines())]))


def show_progress(name: str, activity: str, cancelled: str = "cancelled") -> None:
    """Show the run time of the job of a name, and a button that cancels it; nothing if none is pending.

    activity   text beside the time, such as "solving"
    cancelled  text after it was cancelled
    """

    pending: Job | _DeferredJob | None = st.session_state.get(f"job {name}")
    is_slow = isinstance(pending, Job) and pending.seconds >= SLOW_JOB_S

    def bar() -> None:
        job: Job | _DeferredJob | None = st.session_state.get(f"job {name}")
        if isinstance(job, _DeferredJob):
            if not job.is_shown:
                job.is_shown = True
                st.progress(0.0, text="starting")
                return
            if _is_at_limit():
                st.progress(0.0, text="waiting for the session's other questions")
                return
            job = st.session_state[f"job {name}"] = job.submit()
        if job is None or not job.is_pending or (job.seconds >= SLOW_JOB_S and not is_slow):
            st.rerun()
            return
        with st.container(horizontal=True, vertical_alignment="center"):
            text = "waiting for a free worker" if job.is_waiting else _read(f"{name}.activity") or activity
            share = read_progress(name)
            st.progress(
                min(0.99, job.seconds / (job.seconds + 5)) if share is None else share,
                text=f"{text}, {job.seconds:.0f} s",
            )
            # a callback, because a run may end before it reaches the button: the click would be lost
            st.button("Cancel", key=f"cancel {name}", on_click=end)

    def end() -> None:
        if is_pending(name):
            cancel(name)
            st.session_state[f"error {name}"] = InputError(cancelled)

    if is_pending(name):
        fragments.show_repeatedly(bar, every_s=SLOW_POLL_S if is_slow else FAST_POLL_S)


def read_progress(name: str) -> float | None:
    """Return the finished share of the job of a name, 0 to 1; None where its worker reports none."""
    completed, _, total = _read(f"{name}.progress").partition("/")
    return min(0.99, int(completed) / int(total)) if total.isdecimal() and int(total) else None


def _read(name: str) -> str:
    """Return the text of a worker about the progress of its job; nothing if it wrote nothing."""
    try:
        return (folder() / name).read_text()
    except OSError:
        return ""


def on_request(name: str, request: Any, function: Callable[..., Any], *arguments: Any, activity: str) -> Any:
    """Return the result of a worker for a part of the page; None until it is there.

    name    of the job; its last result is kept for the page's next run
    request  what the result is of: another one is computed anew
    """
    state = st.session_state
    result_now = take_result(name)
    if result_now is not None:
        state[f"found {name}"] = state.get(f"wanted {name}"), result_now
    request_answered, result = state.get(f"found {name}", (None, None))
    if result is not None and request_answered == request:
        return result
    if state.get(f"wanted {name}") != request:
        state[f"wanted {name}"] = request
        submit(name, function, *arguments)
    show_progress(name, activity)
    show_failure(name)
    return None


# --- words --------------------------------------------------------------------------------


def show_error(error: Any) -> None:
    """Show a failure as plain text, a line for each fault."""
    lines = str(error).splitlines() or [type(error).__name__]
    for line in lines[:MAX_ERROR_LINES]:
        st.error(escape_markdown(line))
    if len(lines) > MAX_ERROR_LINES:
        st.error(f"and {len(lines) - MAX_ERROR_LINES} more")


def name_of_address(key: str, names: Sequence[str], default: str) -> str:
    """Return the name under a key of the address, or the default where it is missing or unknown.

    `show_unknown_name` says so.
    """
    name = str(st.query_params.get(key, ""))
    if not name or name in names:
        return name or default
    st.session_state[f"unknown {key}"] = say_unknown(key, name, names), default
    return default


def show_unknown_name(key: str, name: str) -> None:
    """Show that the address has an unknown name, until another choice is made than the replacement."""
    message, instead = st.session_state.get(f"unknown {key}", ("", ""))
    if message and name == instead:
        show_error(message)
    else:
        st.session_state.pop(f"unknown {key}", None)


def escape_markdown(text: str) -> str:
    """Return text that markdown shows unchanged."""
    return "".join("\\" + letter if letter in "\\`*_{}[]()#+-.!|<>$~:" else letter for letter in text)
