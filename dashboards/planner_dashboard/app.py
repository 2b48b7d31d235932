"""The pages of the dashboard; `planner dashboard` runs this file with streamlit."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Final

PAGES: Final = (
    ("what_if", "What if", ":material/tune:"),
    ("recipes", "Recipes", ":material/account_tree:"),
    ("sweeps", "Sweeps", ":material/grid_on:"),
    ("reproduction", "Reproduction", ":material/fact_check:"),
)


def main() -> None:
    """Show the page that is asked for."""
    import streamlit as st  # here: worker processes import this file too, and show nothing

    st.set_page_config(
        page_title="planner", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
    )
    st.navigation(
        [
            st.Page(_page(name, title), title=title, url_path=name, icon=icon, default=name == "what_if")
            for name, title, icon in PAGES
        ]
    ).run()


def _page(name: str, title: str) -> Callable[[], None]:
    """A page that is loaded when it is first shown, below its title."""

    def page() -> None:
        import streamlit as st

        st.title(title)
        import_module(f"planner_dashboard.{name}").page()

    return page


if __name__ == "__main__":
    main()
