"""A search of the workers for one question and design: its start, what it has found so far, its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner_dashboard import session
from planner_dashboard.upgrades import work

TIME_LIMIT_S: Final = 3600.0
"""A search solves many problems; it shows what it finds, and can be cancelled."""
MAX_KEPT: Final = 8
"""Results that a session keeps."""


@dataclass(frozen=True)
class Search:
    """One kind of search in a session.

    name  of its job
    """

    name: str

    @property
    def _files(self) -> Path:
        return session.folder() / self.name

    def find(self, wanted: Any) -> Any:
        """Return the result for what is wanted; None where there is none. Takes it from the workers."""
        state = st.session_state
        kept: dict[Any, Any] = state.setdefault(f"found {self.name}", {})
        done = session.take_result(self.name)
        if done is not None:
            kept[state[f"wanted {self.name}"]] = done
            while len(kept) > MAX_KEPT:
                del kept[next(iter(kept))]
        return kept.get(wanted)

    def start(self, wanted: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a search in place of the one before."""
        self._files.with_suffix(".steps").unlink(missing_ok=True)
        st.session_state[f"wanted {self.name}"] = wanted
        session.submit(self.name, function, *arguments, self._files, time_limit_s=TIME_LIMIT_S)

    def is_running(self, wanted: Any) -> bool:
        """Return whether the search for what is wanted is pending."""
        return session.is_pending(self.name) and st.session_state.get(f"wanted {self.name}") == wanted

    def was_stopped(self, wanted: Any) -> bool:
        """Return whether the search for what is wanted has failed or was cancelled."""
        failed = st.session_state.get(f"error {self.name}") is not None
        return failed and st.session_state.get(f"wanted {self.name}") == wanted

    def partial(self) -> Any:
        """Return what the running, or the stopped, search has found so far."""
        return work.read_partial(self._files)
