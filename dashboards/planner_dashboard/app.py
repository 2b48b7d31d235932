"""The pages of the dashboard; `planner dashboard` runs this file with streamlit."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

import streamlit as st

from planner_dashboard.named_designs import add_named_designs

# module, address, title and icon of each page (streamlit would show a docstring of this constant)
PAGES: Final = (
    ("what_if", "what_if", "What if", ":material/tune:"),
    ("own_data", "own_data", "Your data", ":material/table_edit:"),
    ("through_time", "through_time", "Through time", ":material/timeline:"),
    ("recipes", "recipes", "Recipes", ":material/account_tree:"),
    ("results", "sweeps", "Results", ":material/grid_on:"),
    ("reproduction", "reproduction", "Reproduction", ":material/fact_check:"),
)


def main() -> None:
    """Show the page of the address."""
    add_named_designs()
    st.set_page_config(
        page_title="planner", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
    )
    st.html(Path(__file__).with_name("style.css"))
    pages = {
        address: st.Page(
            _page(module, title), title=title, url_path=address, icon=icon, default=address == "what_if"
        )
        for module, address, title, icon in PAGES
    }
    st.session_state["pages"] = pages  # by which one page opens another
    st.navigation(list(pages.values()), position="top").run()


def _page(module: str, title: str) -> Callable[[], None]:
    """Return a function that shows a page below its title; it imports the page at its first call."""

    def page() -> None:
        if module != "what_if":  # whose heading is the verdict
            st.title(title)
        import_module(f"planner_dashboard.{module}").page()

    return page


if __name__ == "__main__":
    main()
