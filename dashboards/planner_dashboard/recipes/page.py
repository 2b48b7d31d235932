"""The page of coordination mechanisms: the measurements, and the mechanism for given constraints."""

from __future__ import annotations

import streamlit as st

from planner.coordination import measurement
from planner.formatting import sizes
from planner_dashboard import rendering
from planner_dashboard.recipes import measured, space


def page() -> None:
    """Show the page below its title."""
    st.markdown(summary())
    rendering.show_tabs(
        "recipes view",
        ("Value of coordination", measured.show_designs),
        ("Quality of information", measured.show_curves),
        ("Which mechanism suits me", space.show_advice_form),
        ("Design space", space.show_design_space),
    )


def summary() -> str:
    """Return the measurement and its consequence, in one sentence each."""
    designs, curves = measurement.load_release()
    rated = designs[designs["share"].notna()]
    best = rated.groupby("system")["share"].max().astype(float)
    shares = curves["share"].dropna().astype(float)
    follows = "Old, noisy or coarse information can make it worse than none." if (shares < 0).any() else ""
    reached = f"{best.min():.0%} to {best.max():.0%} of the gain that is proven possible"
    return (
        f"**In {sizes({'systems': len(best)})}, the best mechanism reaches {reached} "
        f"over no coordination.** {follows}"
    )
