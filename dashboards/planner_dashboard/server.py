"""The server's process: `python -m planner_dashboard.server run app.py ...`, with streamlit's own words.

What the first page needs is loaded while the browser still loads what it needs itself.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import Final

START: Final = "traffic/germany50"
"""The scenario of a page whose address asks for nothing."""

SHARED_S: Final = 1e-4
"""How long loading keeps the interpreter from who serves the page's many small files."""


def main() -> None:
    """Serve until stopped."""
    from streamlit.web import cli

    threading.Thread(target=_load, name="load", daemon=True).start()
    cli.main(prog_name="streamlit")


def _load() -> None:
    from streamlit import runtime

    while not runtime.exists():  # who listens is found sooner
        time.sleep(0.01)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SHARED_S)
    try:
        from planner.scenario import load
        from planner_dashboard import what_if  # noqa: F401 - loaded for later
        from planner_dashboard.asked import forms

        forms(load(START))
    finally:
        sys.setswitchinterval(usual)
    # streamlit collects garbage after every run of a page: it need not look at what stays for good
    gc.freeze()


if __name__ == "__main__":
    main()
