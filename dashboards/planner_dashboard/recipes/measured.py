"""The value of coordination: as it ships or measured in this session, and with worse information."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import pandas as pd
import streamlit as st

from planner.coordination import measured_examples, measurement
from planner.coordination.measured_examples import Example
from planner.coordination.measurement import Curves, Measurement
from planner.reports import study_pages
from planner.reports.document import Page, Part
from planner.scenarios.catalogue import find_system
from planner_dashboard import rendering, session, worker
from planner_dashboard.recipes import examples
from planner_dashboard.worker import SystemMeasurement

KINDS: Final = {"age": "Age of information", "noise": "Measurement noise", "granularity": "Granularity"}
TIME_LIMIT_S: Final = 3600.0


def show_designs() -> None:
    """Show every system's designs on the same true problem, by the information they have."""
    st.caption(
        "0 %: the plan without coordination. 100 %: the best that is proven possible with all information. "
        "A negative share is worse than no coordination."
    )
    designs, curves = _merge_frames()
    selected = _choose_systems(designs)
    if selected:
        _show_origin(designs[designs["system"].isin(selected)])
        section = _page_of(selected, "", designs, curves).parts[0]
        (figure,) = section.charts
        card = st.container()
        with st.container(key="wide chart"):
            clicked = rendering.show_chart(figure, "coordination", is_selectable=True)
        every = measured_examples.of_designs(designs[designs["system"].isin(selected)])
        with card:
            _show_example("design", every, _clicked_design(clicked))
        rendering.show_lines(section.notes)
        with st.expander("Tables"):
            for table in section.tables:
                rendering.show_table(table)
    _measure_again()


def _clicked_design(selected: Any) -> tuple[Any, ...] | None:
    """Return system and design of the point that was clicked; None without one."""
    points = selected["selection"]["points"] if selected else []
    data = points[0].get("customdata") if points else None
    return (data[0], data[1], "", 0.0) if data else None


def _show_example(key: str, every: Sequence[Example], clicked: tuple[Any, ...] | None) -> None:
    """Show a choice of measured examples, at the clicked one, and the link that opens it."""
    state = st.session_state
    named = {example.title(): example for example in every}
    if not named:
        return
    if clicked is not None and clicked != state.get(f"clicked {key}"):
        titles = [title for title, example in named.items() if example.place() == clicked]
        state[f"example {key}"] = titles[0] if titles else next(iter(named))
    state[f"clicked {key}"] = clicked
    if state.get(f"example {key}") not in named:
        state[f"example {key}"] = next(iter(named))
    left_column, right = st.columns([1, 2], vertical_alignment="bottom")
    selected_title = left_column.selectbox(
        "A measured design", list(named), key=f"example {key}", help="Or choose a point of the chart."
    )
    with right:
        examples.show_link(named[selected_title], f"{key} example")


def show_curves() -> None:
    """Show the performance of each design as its information gets older, noisier or coarser."""
    designs, curves = _merge_frames()
    kinds = [kind for kind in KINDS if kind in set(curves["kind"])]
    if not kinds:
        st.info("No curve is measured yet.")
        _measure_again()
        return
    kind = st.segmented_control(
        "Information gets worse by", kinds, default=kinds[0], format_func=lambda item: KINDS[item]
    )
    rows = curves[curves["kind"] == (kind or kinds[0])]
    selected = _choose_systems(rows)
    if selected:
        _show_origin(rows[rows["system"].isin(selected)])
        page = _page_of(selected, kind or kinds[0], designs, rows)
        clicked, card = None, st.container()
        for section in page.parts[1:]:
            panel_click = _show_panels(section, [_title(name) for name in selected])
            clicked = clicked or panel_click
        with card:
            _show_example("curve", measured_examples.of_curves(rows[rows["system"].isin(selected)]), clicked)
        for section in page.parts[1:]:
            rendering.show_lines(section.notes)
            with st.expander("Tables"):
                for table in section.tables:
                    rendering.show_table(table)
    _measure_again()


def _show_panels(section: Part, systems: Sequence[str]) -> tuple[Any, ...] | None:
    """Show a chart for each system, two beside each other; return the point that was clicked.

    systems  their titles
    """
    rendering.show_part(replace(section, sentences=(), tables=(), notes=()), "key of curves", [])
    clicked: tuple[Any, ...] | None = None
    columns = st.columns(2)
    for index, (system, figure) in enumerate(zip(systems, section.charts, strict=False)):
        with columns[index % 2]:
            selected = rendering.show_chart(figure, f"curves {system}", is_selectable=True)
        points = selected["selection"]["points"] if selected else []
        data = points[0].get("customdata") if points else None
        if data:
            clicked = (system, data[2], "", float(data[3]))
    return clicked


# --- measurements -------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _load_shipped() -> tuple[pd.DataFrame, pd.DataFrame]:
    return measurement.load_release()


def _session_measurements() -> dict[str, SystemMeasurement]:
    """Return the measurements of this session, by system."""
    measurements: dict[str, SystemMeasurement] = st.session_state.get("measured", {})
    return measurements


def _merge_frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return designs and curves: those measured in this session, else those that ship."""
    fresh = _session_measurements()

    def merge(shipped: pd.DataFrame, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
        others = shipped[~shipped["system"].isin(list(fresh))].astype(object)
        return pd.concat([others, *(frame.assign(version=None) for frame in frames)], ignore_index=True)

    designs, curves = _load_shipped()
    return (
        merge(designs, [item.designs for item in fresh.values()]),
        merge(curves, [item.curves for item in fresh.values()]),
    )


def _choose_systems(frame: pd.DataFrame) -> list[str]:
    """Return the systems that the user chooses."""
    names = list(dict.fromkeys(frame["system"]))
    selected = st.pills(
        "Systems", names, selection_mode="multi", default=names, format_func=_title, key="chosen systems"
    )
    return [name for name in names if name in selected]


def _page_of(systems: Sequence[str], kind: str, designs: pd.DataFrame, curves: pd.DataFrame) -> Page:
    """Return the page of the measurements of systems, with curves of a kind; "" for none.

    The page of measurements that ship is the same for all sessions and runs.
    """
    if not _session_measurements().keys() & set(systems):
        return _shipped_page(tuple(systems), kind)
    return _make_page(systems, kind, designs, curves)


@lru_cache(maxsize=8)
def _shipped_page(systems: tuple[str, ...], kind: str) -> Page:
    designs, curves = _load_shipped()
    rows = curves[curves["kind"] == kind] if kind else curves
    return _make_page(systems, kind, designs, rows)


def _make_page(systems: Sequence[str], kind: str, designs: pd.DataFrame, curves: pd.DataFrame) -> Page:
    measurements = [_select_system(name, designs, curves).titled() for name in systems]
    measured = [curve.measured for curve in measurements]
    return study_pages.coordination_page(measured, measurements if kind else ())


def _title(system: str) -> str:
    return find_system(system).label


def _show_origin(frame: pd.DataFrame) -> None:
    versions = [version for version in dict.fromkeys(frame["version"]) if isinstance(version, str)]
    here = sorted({_title(str(row)) for row in frame.loc[frame["version"].isna(), "system"]})
    origins = [f"measured with planner {version}" for version in versions]
    origins += [f"{', '.join(here)} measured here" for _ in here[:1]]
    st.caption("; ".join(origins))


def _select_system(name: str, designs: pd.DataFrame, curves: pd.DataFrame) -> Curves:
    """Return the measurement of a system, with its designs, from data frames of several systems."""
    system, system_designs = find_system(name), designs[designs["system"] == name]
    fresh = _session_measurements().get(name)
    return Curves(
        system=system,
        frame=curves[curves["system"] == name],
        measured=Measurement(
            system=system,
            frame=system_designs,
            bound=_read_bound(system_designs) if fresh is None else fresh.bound,
            failed={} if fresh is None else fresh.failed_designs,
        ),
        failed={} if fresh is None else fresh.failed_runs,
    )


def _read_bound(designs: pd.DataFrame) -> float | None:
    """Return the bound that the shares of shipped designs refer to."""
    bounds = designs["bound"].dropna()
    return float(bounds.iloc[0]) if len(bounds) else None


# --- measuring again ----------------------------------------------------------------------


def _measure_again() -> None:
    """Show the form that measures a system, and take its result."""
    state = st.session_state
    st.subheader("Measure again")
    is_busy = session.is_pending("measure")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "System to measure",
            measurement.measurable_systems(),
            format_func=_title,
            disabled=is_busy,
            width=240,
        )
        is_pressed = st.button(
            "Measure",
            disabled=is_busy,
            help="Run all designs, also with worse information: seconds to minutes.",
        )
    if is_pressed:
        state["measuring"] = name, time.monotonic()
        folder = session.folder()
        store, progress = folder / "measured", folder / "measure.progress"
        session.submit("measure", worker.measure, name, store, progress, time_limit_s=TIME_LIMIT_S)
        st.rerun()
    measurement_made: SystemMeasurement | None = session.take_result("measure")
    if measurement_made is not None:
        name, start = state["measuring"]
        state["measured"] = {**_session_measurements(), name: measurement_made}
        state["measured in"] = f"{_title(name)} measured in {time.monotonic() - start:.0f} s"
        st.rerun()
    activity = f"measuring {_title(state['measuring'][0])}" if is_busy else ""
    session.show_progress("measure", activity, "cancelled; finished runs are kept")
    session.show_failure("measure")
    if state.get("measured in") and not is_busy and not state.get("error measure"):
        st.caption(state["measured in"])
