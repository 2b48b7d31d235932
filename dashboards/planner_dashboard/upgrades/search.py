"""A search of the workers for one question and design: its start, its partial result, its result."""

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

    def find(self, request: Any) -> Any:
        """Return the result for the request; None if there is none. Takes it from the workers."""
        state = st.session_state
        results: dict[Any, Any] = state.setdefault(f"found {self.name}", {})
        result = session.take_result(self.name)
        if result is not None:
            results[state[f"wanted {self.name}"]] = result
            while len(results) > MAX_KEPT:
                del results[next(iter(results))]
        return results.get(request)

    def start(self, request: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a search in place of the one before."""
        self._files.with_suffix(".steps").unlink(missing_ok=True)
        st.session_state[f"wanted {self.name}"] = request
        session.submit(self.name, function, *arguments, self._files, time_limit_s=TIME_LIMIT_S)

    def is_running(self, request: Any) -> bool:
        """Return whether the search for the request is pending."""
        return session.is_pending(self.name) and st.session_state.get(f"wanted {self.name}") == request

    def was_stopped(self, request: Any) -> bool:
        """Return whether the search for the request has failed or was cancelled."""
        failed = st.session_state.get(f"error {self.name}") is not None
        return failed and st.session_state.get(f"wanted {self.name}") == request

    def partial(self) -> Any:
        """Return the partial result of the running, or the stopped, search."""
        return work.read_partial(self._files)
