"""The pages of the dashboard; `planner dashboard` runs this file with streamlit."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from planner_dashboard import recipes, reproduction, sweeps, what_if


def main() -> None:
    """Show the page that is asked for."""
    st.set_page_config(
        page_title="planner", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide"
    )
    pages = [
        st.Page(what_if.page, title="What if", url_path="what_if", icon=":material/tune:", default=True),
        st.Page(recipes.page, title="Recipes", url_path="recipes", icon=":material/account_tree:"),
        st.Page(sweeps.page, title="Sweeps", url_path="sweeps", icon=":material/grid_on:"),
        st.Page(
            reproduction.page, title="Reproduction", url_path="reproduction", icon=":material/fact_check:"
        ),
    ]
    st.navigation(pages).run()


if __name__ == "__main__":  # worker processes import this file too, and show nothing
    main()
