"""Parts of a page that run again after a time without the rest of it: streamlit's fragments."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st


def show_repeatedly(show: Callable[[], None], *, every_s: float) -> None:
    """Show a part of the page, and again after each time, s, in a container of its own.

    When a fragment runs again, streamlit drops those of its messages that the browser has not got yet, but
    sends those of the page. A message that places an element behind the fragment would then arrive first,
    and the browser would refuse it and end the page. The container is a message of the page, so that no
    element outside of it waits for the fragment's messages.
    """
    with st.container():
        st.fragment(show, run_every=every_s)()
