"""What coordination is worth: what ships with planner, or measured anew, and what worse information costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pandas as pd
import streamlit as st

from planner import charts, coordination
from planner.catalogue import find_system
from planner.errors import PlannerError
from planner_dashboard import session, show, work

KINDS: Final = {
    "age": "how old it is",
    "noise": "how badly it is measured",
    "grain": "how coarse it is",
}
LONGEST_S: Final = 3600.0
UNITS: Final = {
    "share": "percent",
    "answers_in_s": "localized",
    "messages": "localized",
    "bytes": "localized",
}


def designs() -> None:
    """Every system's designs on the same true problem, from no coordination to all information."""
    st.markdown(
        "Every system's designs on the same true problem. **0 %** is what comes of deciding alone, **100 %** "
        "the best that is proven possible with all information; less than 0 is worse than no coordination."
    )
    frame, _ = _known()
    chosen = _chosen(frame)
    shown = frame[frame["system"].isin(chosen)]
    if len(shown):
        _origin(shown)
        show.chart(charts.coordination(shown), "worth")
        for name in chosen:
            for sentence in _said(name, shown[shown["system"] == name]):
                st.markdown("- " + session.plain(sentence))
        table = shown.drop(columns="version").infer_objects()
        config = {name: st.column_config.NumberColumn(format=how) for name, how in UNITS.items()}
        st.dataframe(table, hide_index=True, column_config=config)
    _anew()


def curves() -> None:
    """What is left of each mechanism as what is told gets older, noisier or coarser."""
    _, frame = _known()
    kinds = [kind for kind in KINDS if kind in set(frame["kind"])]
    if not kinds:
        st.info("No curve is measured yet.")
        _anew()
        return
    kind = st.segmented_control(
        "information is worse by", kinds, default=kinds[0], format_func=lambda one: f"{one}: {KINDS[one]}"
    )
    rows = frame[frame["kind"] == (kind or kinds[0])]
    chosen = _chosen(rows)
    present = set(rows["mechanism"])
    st.markdown(
        " &nbsp; ".join(
            f"<span style='color:{colour}'>●</span> {name}"
            for name, colour in charts.MECHANISMS.items()
            if name in present
        ),
        unsafe_allow_html=True,
    )
    columns = st.columns(2) if len(chosen) > 1 else [st.container()]
    for place, name in enumerate(chosen):
        with columns[place % len(columns)]:
            its = rows[rows["system"] == name]
            show.chart(charts.curves(its, str(its["kind"].iloc[0]), legend=False), f"curves {name}")
            _origin(its)
            with st.expander("in words"):
                for sentence in _curve_said(name, frame[frame["system"] == name], str(its["kind"].iloc[0])):
                    st.markdown("- " + session.plain(sentence))
    _anew()


# --- what is known ------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _shipped() -> tuple[pd.DataFrame, pd.DataFrame]:
    return coordination.shipped()


def _known() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Designs and curves: what was measured in this session, else what ships."""
    found = []
    anew: dict[str, work.Worth] = st.session_state.get("measured", {})
    for place, shipped in enumerate(_shipped()):
        fresh = [(one.designs, one.curves)[place].assign(version=None) for one in anew.values()]
        kept = shipped[~shipped["system"].isin(list(anew))]
        found.append(pd.concat([kept.astype(object), *fresh], ignore_index=True))
    return found[0], found[1]


def _chosen(frame: pd.DataFrame) -> list[str]:
    """The systems to be shown."""
    names = list(dict.fromkeys(frame["system"]))
    picked = st.pills("systems", names, selection_mode="multi", default=names, key="worth systems")
    return [name for name in names if name in picked]


def _origin(frame: pd.DataFrame) -> None:
    versions = [version for version in dict.fromkeys(frame["version"]) if isinstance(version, str)]
    here = sorted({str(row) for row in frame.loc[frame["version"].isna(), "system"]})
    said = [f"measured with planner {version}" for version in versions]
    said += [f"{', '.join(here)} measured here" for _ in here[:1]]
    st.caption("; ".join(said))


def _measured(name: str, frame: pd.DataFrame) -> coordination.Measured:
    # only whether there is a bound is told of it: shares are known where there is one
    bound = 1.0 if frame["share"].notna().any() else None
    return coordination.Measured(system=find_system(name), frame=frame, bound=bound, failed={})


def _said(name: str, frame: pd.DataFrame) -> Sequence[str]:
    return _measured(name, frame).sentences()


def _curve_said(name: str, frame: pd.DataFrame, kind: str) -> Sequence[str]:
    none = _measured(name, frame.iloc[:0])
    made = coordination.Curves(system=none.system, frame=frame, measured=none, failed={})
    return made.sentences(kind)


# --- anew ---------------------------------------------------------------------------------


def _anew() -> None:
    """Measure a system again, here."""
    state = st.session_state
    st.subheader("Measure anew")
    asked = session.is_asked("measure")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox("system to measure", coordination.measurable(), disabled=asked, width=240)
        pressed = st.button(
            "Measure", disabled=asked, help="its designs, and with worse information: seconds to minutes"
        )
    if pressed:
        state["measuring"] = name, time.monotonic()
        state["trouble measure"] = None
        home = session.folder()
        store, progress = home / "measured", home / "measure.progress"
        progress.unlink(missing_ok=True)  # of one that was cancelled
        session.put("measure", work.measure, name, store, progress, longest_s=LONGEST_S)
        st.rerun()
    try:
        found: work.Worth | None = session.answer("measure")
    except PlannerError as error:
        found, state["trouble measure"] = None, error
    if found is not None:
        name, since = state["measuring"]
        state["measured"] = {**state.get("measured", {}), name: found}
        state["said"] = f"{name} measured in {time.monotonic() - since:.0f} s"
        st.rerun()
    if asked:
        session.progress("measure", f"measuring {state['measuring'][0]}", "cancelled; what is done is kept")
    if state.get("trouble measure") is not None:
        session.said(state["trouble measure"])
    elif state.get("said") and not asked:
        st.caption(state["said"])
