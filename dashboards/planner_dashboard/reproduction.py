"""Published values beside ours, target by target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    """The page below its title."""
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
    found = _found(name, quick)
    if found is not None:
        _shown(name, *found)


def _found(name: str, quick: bool) -> Any:
    """What came of running a target; None where it is not run, or still runs."""
    state = st.session_state
    done = state.setdefault("reproduced", {})
    try:
        found = session.answer("reproduce")
        if found is not None:
            done[state["reproducing"]] = found
    except PlannerError as error:
        state["trouble reproduce"] = error
    if session.is_asked("reproduce"):
        session.progress("reproduce", f"running {state['reproducing'][0]}")
    if state.get("trouble reproduce") is not None:
        session.said(state["trouble reproduce"])
    busy = session.is_asked("reproduce")
    if (name, quick) not in done and st.button("Run", type="primary", disabled=busy):
        state["reproducing"] = name, quick
        state["trouble reproduce"] = None
        session.put("reproduce", work.reproduce, name, quick)
        st.rerun()
    return done.get((name, quick))


def _shown(name: str, rows: Sequence[Mapping[str, Any]], figures: Sequence[str], trouble: str) -> None:
    """Each published value beside ours."""
    if trouble:
        st.error(session.plain(trouble))
    frame = pd.DataFrame(rows)
    if len(frame):
        shown = frame[["quantity", "published", "ours", "verdict", "ratio", "unit", "condition", "note"]]
        shown = shown.astype({"published": str, "ours": str})
        styled = shown.style.map(lambda verdict: COLOURS.get(verdict, ""), subset=["verdict"])
        st.dataframe(
            styled.format({"ratio": "{:.3g}"}, na_rep=""),
            hide_index=True,
            column_config={"quantity": st.column_config.TextColumn(width="medium")},
        )
        counts = frame["verdict"].value_counts()
        st.caption(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    show.charts(figures, name)
