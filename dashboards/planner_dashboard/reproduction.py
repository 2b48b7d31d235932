"""Published values beside ours, target by target."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner import reproduce
from planner.errors import PlannerError
from planner_dashboard import session, show, work

COLOURS = {
    "reproduced": "color: #1a9850",
    "calibrated": "color: #2b8cbe",
    "order only": "color: #e08214",
    "not reproduced": "color: #d73027",
    "not available": "color: #888888",
}


def page() -> None:
    """The page, from top to bottom."""
    st.title("Reproduction")
    st.markdown(
        "Tables and figures of the papers, run again: each published value beside ours, with a verdict."
    )
    targets = {f"{system.name}/{target.name}": target for system, target in reproduce.find_targets()}
    if not targets:
        st.info("There are no targets.")
        return
    asked = st.query_params.get("target", "")
    names = list(targets)
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    if asked in names:
        st.session_state.setdefault("target", asked)
    name = left.selectbox("target", names, key="target")
    quick = right.toggle("quick", value=True, help="smaller or shorter runs: seconds each")
    st.query_params["target"] = name
    target = targets[name]
    st.caption(f"{target.place}: {target.about}")
    done = st.session_state.setdefault("reproduced", {})
    if (name, quick) not in done:
        if not st.button("Run", type="primary"):
            return
        with st.spinner("running"):
            job = session.workers().ask(work.reproduce, name, quick)
            job.future.exception()
        try:
            done[name, quick] = job.answer()
        except PlannerError as error:
            session.said(error)
            return
    rows, figures, trouble = done[name, quick]
    if trouble:
        st.error(session.plain(trouble))
    frame = pd.DataFrame(rows)
    if len(frame):
        shown = frame[["quantity", "condition", "published", "ours", "ratio", "unit", "verdict", "note"]]
        shown = shown.astype({"published": str, "ours": str})
        styled = shown.style.map(lambda verdict: COLOURS.get(verdict, ""), subset=["verdict"])
        st.dataframe(styled.format({"ratio": "{:.3g}"}, na_rep=""), hide_index=True)
        counts = frame["verdict"].value_counts()
        st.caption(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    for place, figure in enumerate(figures):
        show.chart(figure, f"{name} {place}")
