"""The server's process: `python -m planner_dashboard.server run app.py ...`, with streamlit's arguments.

It loads what the first page needs while the browser still loads its own files.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from typing import Final

SWITCH_INTERVAL_S: Final = 1e-4
"""While modules load, the interpreter switches to the threads that serve files after this time."""


def main() -> None:
    """Serve until stopped."""
    from streamlit.web import cli

    threading.Thread(target=_load, name="load", daemon=True).start()
    cli.main(prog_name="streamlit")


def _load() -> None:
    from streamlit import runtime

    while not runtime.exists():  # the server listens first
        time.sleep(0.01)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        from planner_dashboard import question, what_if  # noqa: F401 - the page

        question.form_fields(question.unchanged_scenario(question.FIRST_SCENARIO))
    finally:
        sys.setswitchinterval(usual)
    # streamlit collects garbage after every run of a page: it need not visit permanent objects
    gc.freeze()


if __name__ == "__main__":
    main()
