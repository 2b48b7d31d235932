"""The page "Through time": choose windows and events, run designs, and play their decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

from planner.contract.drawing import Curve, Drawing, NetworkMap, Timeline
from planner.contract.elements import ElementKind
from planner.contract.frames import Frame
from planner.contract.parameters import parameters_of
from planner.contract.simulation import Simulation
from planner.contract.system import System
from planner.errors import PlannerError
from planner.runs.verdict import Sentence
from planner.scenarios.scenario import Scenario
from planner.scenarios.shipped import scenario_names
from planner_dashboard import fields, fragments, pictures, rendering, session, titles
from planner_dashboard.question import field_value, unchanged_scenario
from planner_dashboard.session import escape_markdown
from planner_dashboard.through_time import tasks
from planner_dashboard.through_time.events import Mark, day_scales, events_of
from planner_dashboard.what_if import headline

FIRST_SCENARIO: Final = "traffic/abilene"
"""The scenario of an address that names none: its day takes seconds."""
FIRST_SWING: Final = 40
"""Swing of demand over a day, percent, until a user says otherwise."""
WINDOWS, SIMULATION = "Windows", "Simulation"
MAX_WINDOWS: Final = 96
MOST_DESIGNS: Final = 2
MAX_FIGURES: Final = 4
HEIGHT: Final = 560
BESIDE_HEIGHT: Final = 420


@dataclass(eq=False)
class PageState:
    """State of a session on this page.

    described    the scenario and windows that are described
    description  its windows and elements
    marks        events, in the order in which the user added them
    is_begun     whether the scenario has its first event, which a user may remove
    rolled       the last roll
    simulated    the last simulation
    """

    described: Any = None
    description: tasks.Description | None = None
    marks: list[Mark] = field(default_factory=list)
    is_begun: bool = False
    rolled: tasks.RolledDesigns | None = None
    simulated: tasks.Simulated | None = None


def page() -> None:
    """Show the page below its title."""
    state: PageState = st.session_state.setdefault("through time", PageState())
    _take_results(state)
    top = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Scenario",
            scenario_names(),
            index=scenario_names().index(
                session.name_of_address("scenario", scenario_names(), FIRST_SCENARIO)
            ),
            format_func=titles.title_with_topic,
            key="time scenario",
            width=320,
        )
        with top:
            session.show_unknown_name("scenario", name)
        try:
            scenario = unchanged_scenario(name)
        except PlannerError as error:
            session.show_error(error)
            return
        designs = _show_designs(scenario)
        kind = _show_kind(scenario)
    st.query_params.from_dict({"scenario": name})
    if kind == SIMULATION:
        _show_simulation(state, scenario, designs)
    else:
        _show_roll(state, scenario, designs)


def _take_results(state: PageState) -> None:
    """Take the finished results of the workers."""
    described: tasks.Description | None = session.take_result("time elements")
    if described is not None:
        state.description = described
    state.rolled = session.take_result("roll") or state.rolled
    state.simulated = session.take_result("simulation") or state.simulated


def _show_designs(scenario: Scenario) -> list[str]:
    """Show the choice of designs, at most two beside each other."""
    labels_given = [entry.label for entry in scenario.designs]
    labels = list(
        dict.fromkeys(
            [*labels_given, *(design.name for design in scenario.system.designs if not design.is_bound)]
        )
    )
    return st.multiselect(
        "Designs",
        labels,
        default=labels[:MOST_DESIGNS],
        format_func=scenario.design_title,
        max_selections=MOST_DESIGNS,
        key=f"time designs {scenario.name}",
        width=380,
    )


def _show_kind(scenario: Scenario) -> str:
    """Show whether consecutive windows or a simulation is played, where the system has both."""
    if scenario.system.studies.simulation is None:
        return WINDOWS
    default = SIMULATION if scenario.raw.get("simulation") else WINDOWS
    selected = st.segmented_control(
        "In time by", [WINDOWS, SIMULATION], default=default, key=f"time kind {scenario.name}"
    )
    return str(selected or default)


# --- windows ------------------------------------------------------------------------------


def _show_roll(state: PageState, scenario: Scenario, designs: list[str]) -> None:
    """Show windows and events, run the designs, and play the result."""
    is_series = scenario.make_series is not None
    windows: int | None = None
    scales: Sequence[float] = ()
    can_scale = "scale" in parameters_of(scenario.system.problem.adjust)
    if not is_series:
        left_column, right = st.columns(2)
        with left_column:
            windows = fields.show_count(f"time windows {scenario.name}", "Windows", 2, MAX_WINDOWS, 24)
        if can_scale:
            with right:
                swing = fields.show_count(
                    f"time swing {scenario.name}",
                    "Swing of demand over a day [%]",
                    0,
                    90,
                    FIRST_SWING,
                    "Demand of each window is that of the scenario times 1 plus this share of a cosine "
                    "with its maximum at 20 h.",
                )
            scales = day_scales(windows, swing / 100) if swing else ()
    _describe(state, scenario, windows if is_series else None)
    session.show_progress("time elements", "reading the scenario")
    session.show_failure("time elements")
    if state.described != scenario.name or state.description is None:
        return
    labels = state.description.labels or tuple(str(count) for count in range(1, (windows or 1) + 1))
    if not state.is_begun:
        state.marks, state.is_begun = first_marks(scenario.system, state.description, len(labels)), True
    marks = [mark for mark in state.marks if mark.first < len(labels)]
    _show_events(state, scenario.system, state.description, labels, marks)
    adjustments = {
        name: value
        for name in parameters_of(scenario.system.problem.adjust)
        if (value := scenario.raw["problem"].get(name)) is not None
    }
    course = tasks.Course(
        scenario=scenario.name,
        designs=tuple(designs),
        windows=windows,
        events=events_of(marks, labels, adjustments, scales),
    )
    st.caption(
        "Each design plans the windows one after another, and knows its plan of the window before. An event, "
        "such as a failed link or more demand, holds from one window to another."
    )
    if st.button("Run", type="primary", disabled=not designs, key="time run"):
        (session.folder() / "roll.windows").unlink(missing_ok=True)
        session.submit("roll", tasks.roll, course, session.folder(), session.folder())
        st.rerun()
    session.show_progress("roll", "solving windows")
    session.show_failure("roll")
    if session.is_pending("roll"):
        _show_finished_windows(scenario.system)
    elif state.rolled is not None and state.rolled.course.scenario == scenario.name:
        if state.rolled.course != course:
            st.caption("The results below are for the previous settings.")
        _show_rolled(scenario.system, state.rolled)


def first_marks(system: System, description: tasks.Description, windows: int) -> list[Mark]:
    """Return the events that a scenario without its own begins with: an element fails for a third of them."""
    for kind in system.problem.elements:
        names, actions = description.elements.get(kind.name, ()), kind.with_role("failure")
        if names and actions and windows >= 3:
            third = windows // 3
            return [Mark(kind=kind.name, element=names[0], action=actions[0], first=third, end=2 * third)]
    return []


def _describe(state: PageState, scenario: Scenario, windows: int | None) -> None:
    """Have the windows and elements of another scenario listed."""
    if state.described == scenario.name:
        return
    state.described, state.description = scenario.name, None
    state.marks, state.is_begun = [], scenario.make_series is not None  # in a series something happens
    course = tasks.Course(scenario=scenario.name, designs=(), windows=windows)
    session.submit("time elements", tasks.describe, course, session.folder())


def _show_events(
    state: PageState,
    system: System,
    description: tasks.Description,
    labels: Sequence[str],
    marks: Sequence[Mark],
) -> None:
    """Show the events, each of which a click removes, and the form that adds one."""
    with st.container(horizontal=True, vertical_alignment="center", key="changes"):
        for index, mark in enumerate(marks):
            st.button(
                escape_markdown(mark.words(labels)) + "  ✕",
                key=f"time mark {index} {mark.words(labels)}",
                on_click=partial(state.marks.remove, mark),
                help="Remove this event",
            )
        kinds = [kind for kind in system.problem.elements if kind.actions]
        if kinds:
            with st.popover("Add an event"):
                _show_event_form(state, kinds, description, labels)
        elif not marks:
            st.caption("This system has no elements that change in time.")


def _show_event_form(
    state: PageState, kinds: Sequence[ElementKind], description: tasks.Description, labels: Sequence[str]
) -> None:
    kind = st.selectbox(
        "What", kinds, format_func=lambda option: option.name.capitalize(), key="time kind of event"
    )
    name = st.selectbox(
        "Which", description.elements[kind.name], format_func=_shown, key=f"time element {kind.name}"
    )
    action = st.selectbox(
        "What happens", kind.actions, format_func=lambda option: option.name, key=f"time action {kind.name}"
    )
    first, last = st.select_slider(
        "From window, until window",
        range(len(labels) + 1),
        value=(len(labels) // 3, len(labels)),
        format_func=lambda index: labels[index] if index < len(labels) else "the end",
        key=f"time range {len(labels)}",
    )
    if st.button("Add", disabled=name is None or first >= len(labels), key="time add"):
        end = last if first < last < len(labels) else None
        state.marks.append(Mark(kind=kind.name, element=name, action=action, first=first, end=end))
        st.rerun()


def _shown(name: str) -> str:
    return name.replace("<->", " – ").replace("->", " → ")


def _show_finished_windows(system: System) -> None:
    """Show the headline metric of the windows that are finished while the others are computed."""

    def curve() -> None:
        rows = _read_rows(session.folder() / "roll.windows")
        if rows:
            _show_curve(system, pd.DataFrame(rows), "time curve so far")

    fragments.show_repeatedly(curve, every_s=1.0)


def _read_rows(path: Path) -> list[dict[str, Any]]:
    try:
        return list(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return []


def _show_curve(system: System, rows: pd.DataFrame, key: str) -> None:
    """Show the headline metric over the windows, a line for each design."""
    metric = system.headline
    if metric.name not in rows:
        return
    wide = rows.pivot_table(index="window", columns="design", values=metric.name, sort=False)
    wide.insert(0, "window", range(1, len(wide) + 1))
    units = dict.fromkeys(map(str, wide.columns[1:]), metric.unit)
    rendering.show_drawing(Curve(title=metric.label, frame=wide.reset_index(drop=True), units=units), key)


def _show_rolled(system: System, rolled: tasks.RolledDesigns) -> None:
    """Show the verdict, the player or one clock for two designs, and the figures of all windows."""
    headline.show_verdict([Sentence(text) for text in rolled.sentences], ())
    for design in rolled.designs:
        for label, why in list(design.failures.items())[: session.MAX_ERROR_LINES]:
            st.error(escape_markdown(f"{design.title}, window {label}: {why}"))
    if rolled.note:
        st.caption(rolled.note)
    only = rolled.designs[0] if len(rolled.designs) == 1 else None
    if only is not None and all(isinstance(picture, NetworkMap) for picture in only.pictures):
        _show_player(system, rolled, only)
    else:
        _show_clock(system, rolled)
    with st.expander("All figures"):
        for index, (section, figures) in enumerate(rolled.parts):
            rendering.show_part(section, f"time part {index}", figures)


def _notes(rolled: tasks.RolledDesigns) -> list[str]:
    """Return the changes of each window, as text."""
    notes = []
    for label in rolled.labels:
        changed = rolled.course.events.get(label, {})
        words = []
        for key, value in changed.items():
            name = fields.field_label(key.rpartition(".")[2])
            shown = (
                ", ".join(map(_shown, map(str, value))) if isinstance(value, list | tuple | dict) else value
            )
            words.append(f"{name}: {shown if shown != '' else 'none'}")
        notes.append("; ".join(words))
    return notes


def _show_player(system: System, rolled: tasks.RolledDesigns, design: tasks.DesignWindows) -> None:
    """Show the player of one design, which runs in the page."""
    metric = system.headline
    frames = [
        pictures.Frame(label=label, drawing=picture, note=note)
        for label, picture, note in zip(rolled.labels, design.pictures, _notes(rolled), strict=True)
        if isinstance(picture, NetworkMap)
    ]
    curve = pictures.MetricCurve(
        label=metric.label, unit=metric.unit, values=[row.get(metric.name) for row in design.rows]
    )
    pictures.show_frames(frames, key=f"time player {design.label}", curve=curve, height=HEIGHT)


def _show_clock(system: System, rolled: tasks.RolledDesigns) -> None:
    """Show the designs side by side at one window, which a slider chooses."""
    indices = range(len(rolled.labels))
    index = 0
    if len(rolled.labels) > 1:
        index = st.select_slider(
            "Window",
            indices,
            format_func=lambda index_: rolled.labels[index_],
            key=f"time clock {len(indices)}",
        )
    if note := _notes(rolled)[index]:
        st.caption(escape_markdown(note))
    columns = st.columns(len(rolled.designs)) if len(rolled.designs) > 1 else [st.container()]
    for column, design in zip(columns, rolled.designs, strict=True):
        with column:
            row = design.rows[index]
            st.markdown(f"**{escape_markdown(design.title)}**: {escape_markdown(_figures(system, row))}")
            _show_picture(design.pictures[index], _whole(design), f"time picture {design.label}")
    rows = [{"design": design.title, **row} for design in rolled.designs for row in design.rows]
    _show_curve(system, pd.DataFrame(rows), "time curve")


def _figures(system: System, row: Any) -> str:
    """Return the first figures of a window in words."""
    names = [
        system.headline.name,
        *system.plan.headline.losses,
        *(metric.name for metric in system.table_metrics),
    ]
    names_shown = [name for name in dict.fromkeys(names) if row.get(name) is not None]
    metrics = [system.metric(name) for name in names_shown[:MAX_FIGURES]]
    return "; ".join(f"{metric.label} {metric.text(row[metric.name])}" for metric in metrics)


def _whole(design: tasks.DesignWindows) -> NetworkMap | None:
    """Return the picture with the most links, beside which those of other windows show failures."""
    maps = [picture for picture in design.pictures if isinstance(picture, NetworkMap)]
    return max(maps, key=lambda map_: len(map_.links), default=None)


def _show_picture(drawing: Drawing | None, full_map: NetworkMap | None, key: str) -> None:
    if drawing is None:
        st.caption("No picture of this window.")
    elif isinstance(drawing, NetworkMap):
        before = full_map if full_map is not None and len(full_map.links) > len(drawing.links) else None
        pictures.show_network(drawing, key=key, before=before, height=BESIDE_HEIGHT)
    elif isinstance(drawing, Timeline):
        pictures.show_timeline(drawing, key=key, height=BESIDE_HEIGHT)
    else:
        rendering.show_drawing(drawing, key)


# --- simulations --------------------------------------------------------------------------


def _show_simulation(state: PageState, scenario: Scenario, designs: list[str]) -> None:
    """Show the parameters of a simulation, run it, and show its verdict, curves and figures."""
    simulation = scenario.system.studies.simulation
    assert simulation is not None
    changes = _show_parameters(scenario, simulation)
    able = simulation.designs or tuple(design.name for design in scenario.system.designs)
    labels = [label for label in designs if scenario.entry(label).design.name in able]
    if len(labels) < len(designs):
        others = ", ".join(scenario.design_title(label) for label in designs if label not in labels)
        can = ", ".join(map(scenario.design_title, able))
        st.caption(escape_markdown(f"Cannot control a simulation: {others}. Those that can: {can}."))
    st.caption("Each design controls the system in a simulation, from what it would see in operation.")
    if st.button("Run", type="primary", disabled=not labels, key="time simulate"):
        session.submit("simulation", tasks.simulate, scenario.name, session.folder(), tuple(labels), changes)
        st.rerun()
    session.show_progress("simulation", "simulating")
    session.show_failure("simulation")
    simulated = state.simulated
    if simulated is None or simulated.scenario != scenario.name or session.is_pending("simulation"):
        return
    headline.show_verdict([Sentence(text) for text in simulated.sentences], ())
    _show_frames(
        scenario, simulation, {label: frames for label, frames in simulated.frames.items() if frames}
    )
    for index, (section, figures) in enumerate(simulated.parts):
        rendering.show_part(section, f"simulation {index}", figures)


def _show_frames(scenario: Scenario, simulation: Simulation, runs: Mapping[str, Sequence[Frame]]) -> None:
    """Play the frames of each design, side by side on one clock."""
    if not runs:
        return
    metric = simulation.headline_metric
    values = [frame.value for frames in runs.values() for frame in frames if frame.value is not None]
    columns = st.columns(len(runs)) if len(runs) > 1 else [st.container()]
    for column, (label, frames) in zip(columns, runs.items(), strict=True):
        curve = pictures.MetricCurve(
            label=metric.label,
            unit=metric.unit,
            values=[frame.value for frame in frames],
            largest=max(values, default=None),
        )
        moments = [
            pictures.Frame(label=frame.label, drawing=frame.drawing)
            for frame in frames
            if isinstance(frame.drawing, NetworkMap)
        ]
        with column:
            st.markdown(f"**{escape_markdown(scenario.design_title(label))}**")
            if len(moments) == len(frames):
                pictures.show_frames(
                    moments,
                    key=f"simulation player {label}",
                    curve=curve if values else None,
                    height=HEIGHT if len(runs) == 1 else BESIDE_HEIGHT,
                    clock="simulation",
                )
            else:
                _show_picture(frames[-1].drawing, None, f"simulation picture {label}")


def _show_parameters(scenario: Scenario, simulation: Simulation) -> dict[str, Any]:
    """Show the parameters of a simulation, such as failures and their times; return those that differ."""
    changes: dict[str, Any] = {}
    with st.expander("Duration, delays and failures"):
        columns = st.columns(3)
        offered = parameters_of(simulation.run)
        for index, (name, parameter) in enumerate(offered.items()):
            key = f"simulation.{name}"
            default = field_value(scenario, key, parameter)
            with columns[index % 3]:
                value = fields.show_field(f"time {scenario.name} {key}", parameter, default)
            same = tuple(default) if isinstance(default, list) else default
            if value != same and not (value in ((), None) and same in ((), None)):
                changes[key] = value
    return changes
