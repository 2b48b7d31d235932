"""Published values beside ours, target by target."""

from __future__ import annotations

import streamlit as st

from planner.runs import reproduction
from planner_dashboard import rendering, session, worker


def page() -> None:
    """Show the page below its title."""
    st.markdown(
        "Tables and figures of the papers, run again: each published value beside ours, with a verdict."
    )
    targets = {f"{system.name}/{target.name}": target for system, target in reproduction.find_targets()}
    if not targets:
        st.info("There are no targets.")
        return
    from_address = st.query_params.get("target", "")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    if from_address in targets:
        st.session_state.setdefault("target", from_address)
    name = left.selectbox("Target", list(targets), key="target")
    is_quick = right.toggle("Quick", value=True, help="Smaller or shorter runs: seconds each.")
    st.query_params["target"] = name
    result = _result(name, is_quick)
    if result is None:
        st.caption(f"{targets[name].place}: {targets[name].about}")
        return
    for number, (part, figures) in enumerate(result):
        rendering.show_part(part, f"{name} {number}", figures)


def _result(name: str, is_quick: bool) -> worker.RenderedParts | None:
    """Return the result of running a target; None where it has not run, or still runs."""
    state = st.session_state
    results = state.setdefault("reproduced", {})
    result = session.take_result("reproduce")
    if result is not None:
        results[state["reproducing"]] = result
    is_busy = session.is_pending("reproduce")
    session.show_progress("reproduce", f"running {state.get('reproducing', [''])[0]}")
    session.show_failure("reproduce")
    if (name, is_quick) not in results and st.button("Run", type="primary", disabled=is_busy):
        state["reproducing"] = name, is_quick
        session.submit("reproduce", worker.reproduce, name, is_quick)
        st.rerun()
    found: worker.RenderedParts | None = results.get((name, is_quick))
    return found
