"""The design space of coordination, and the mechanism that suits given constraints."""

from __future__ import annotations

from typing import Final

import streamlit as st
from plotly import graph_objects as go

from planner.coordination import design_space
from planner.coordination.design_space import SPACE, Flow, Information, Resources, Separation
from planner.errors import PlannerError
from planner.formatting import counted
from planner.reports import study_pages
from planner_dashboard import rendering, session
from planner_dashboard.recipes import examples

NOT_STATED: Final = "not stated"
TRANSPARENT: Final = "rgba(0,0,0,0)"
TINTS: Final = {
    "reaction": "#c9c9c9",
    "priority ranking": "#e8b65c",
    "hierarchical partitioning / priority ranking": "#a9b56c",
    "hierarchical partitioning": "#5fae8c",
    "transparency": "#6fa8dc",
}


def show_advice_form() -> None:
    """Show the form for the user's constraints, the mechanism that suits, and a measured example."""
    st.caption("Two constraints decide: the information that can be shared, and the resources decided on.")
    _show_form()


def show_design_space() -> None:
    """Show the nine cells of the design space, and the recommendation for the selected one."""
    _show_map()
    section, systems = study_pages.design_space_page(design_space.review().reviews).parts
    with st.expander("Systems that could coordinate otherwise"):
        rendering.show_lines(section.notes)
    for table in systems.tables:
        rendering.show_table(table)


def _show_map() -> None:
    """Show the nine cells, and the recommendation for the selected one."""
    selected = rendering.show_chart(_map(), "space", is_selectable=True)
    points = selected["selection"]["points"] if selected else []
    if not points:
        st.caption("Choose a cell to see its mechanism, systems of the literature, and designs of planner.")
        return
    information, resources = points[0]["customdata"][:2]
    st.markdown(f"**{information} information, {resources} resources**")
    _show_advice(design_space.recommend(resources=resources, information=information))


def _map() -> go.Figure:
    """Return the design space as a scatter chart with a square for each cell: only points can be selected."""
    systems_today = design_space.table_1_1()
    resources, information = list(Resources), list(Information)
    figure = go.Figure()
    for row, level in enumerate(information):
        for column, relation in enumerate(resources):
            name = " / ".join(map(str, SPACE[level, relation]))
            figure.add_shape(
                type="rect", x0=column - 0.48, x1=column + 0.48, y0=row - 0.47, y1=row + 0.47,
                fillcolor=TINTS[name], line_width=0, layer="below",
            )  # fmt: skip
    cells = [(row, column) for row in range(len(information)) for column in range(len(resources))]
    texts, hover = [], []
    for row, column in cells:
        level, relation = information[row], resources[column]
        here = [
            system for system in systems_today if system.information is level and relation in system.resources
        ]
        # a narrow page breaks these long names at their spaces
        names = "<br>/ ".join(str(mechanism).replace(" ", "<br>") for mechanism in SPACE[level, relation])
        count = counted(len(here), "systems") if here else "no prior work"
        texts.append(f"<b>{names}</b><br><i>{count}</i>")
        systems = (
            "<br>".join(f"{system.name}: {system.mechanism} today" for system in here) or "no prior work"
        )
        hover.append([str(level), str(relation), systems])
    figure.add_trace(
        go.Scatter(
            x=[column for _, column in cells],
            y=[row for row, _ in cells],
            mode="markers+text",
            text=texts,
            textfont={"color": "#111111", "size": 12},
            customdata=hover,
            hovertemplate="%{customdata[2]}<extra></extra>",
            # as large as a cell of a narrow page, and visible only when selected
            marker={"symbol": "square", "size": 84, "color": "#ffffff", "opacity": 0},
            selected={"marker": {"opacity": 0.45}, "textfont": {"color": "#111111"}},
            unselected={"marker": {"opacity": 0}, "textfont": {"color": "#111111"}},
        )
    )
    figure.update_xaxes(
        tickvals=list(range(len(resources))),
        ticktext=[str(resource) for resource in resources],
        range=[-0.5, 2.5],
        title_text="resources", showgrid=False, zeroline=False, fixedrange=True, side="top",
    )  # fmt: skip
    figure.update_yaxes(
        tickvals=list(range(len(information))),
        ticktext=[str(level_) for level_ in information],
        range=[2.5, -0.5],
        title_text="information", showgrid=False, zeroline=False, fixedrange=True, automargin=True,
        tickangle=-90,
    )  # fmt: skip
    return figure.update_layout(
        height=420, margin={"l": 10, "r": 10, "t": 10, "b": 10}, showlegend=False, dragmode=False,
        hovermode="closest", clickmode="event+select", paper_bgcolor=TRANSPARENT, plot_bgcolor=TRANSPARENT,
    )  # fmt: skip


# --- recommendations ----------------------------------------------------------------------


def _show_form() -> None:
    """Show the form for the user's constraints, and the recommendation for them."""
    columns = st.columns(3)
    resources = columns[0].selectbox(
        "Resources",
        [str(resource) for resource in Resources],
        help="The devices that the control planes decide on, compared with each other.",
    )
    separation = columns[1].selectbox(
        "Separation",
        [NOT_STATED, *(str(item) for item in Separation)],
        index=1 + list(Separation).index(Separation.COMPANIES),
        help="What separates the control planes.",
    )
    information = columns[2].selectbox(
        "Information that can be shared",
        [NOT_STATED, *(str(level) for level in Information)],
        help="If not stated, what the separation allows.",
    )
    details = st.columns(4)
    decide_s = details[0].number_input(
        "Time of a good decision [s]", value=None, min_value=0.0, help="How long a good decision takes."
    )
    react_s = details[1].number_input(
        "Time to react to an event [s]",
        value=None,
        min_value=1e-9,
        format="%g",
        help="Within which time a decision must follow an event, such as the period of the control plane.",
    )
    age_s = details[2].number_input(
        "Age of information [s]",
        value=None,
        min_value=0.0,
        help="How old their view of each other is when they use it; if not stated, the time of a decision.",
    )
    flow = details[3].selectbox(
        "Flow of information",
        [NOT_STATED, *(str(way) for way in Flow)],
        help="In which ways the control planes can tell each other something.",
    )
    try:
        advice = design_space.recommend(
            resources=resources,
            information=None if information == NOT_STATED else information,
            separation=None if separation == NOT_STATED else separation,
            flow=None if flow == NOT_STATED else flow,
            decide_s=decide_s,
            react_s=react_s,
            age_s=age_s,
        )
    except PlannerError as error:
        if separation == information == NOT_STATED and decide_s is None and react_s is None:
            st.info("State the separation, or the information that can be shared.")
        else:
            session.show_error(error)
    else:
        _show_advice(advice)


def _show_advice(advice: design_space.Recommendation) -> None:
    """Show the mechanism that suits, and its gain in the nearest measured example."""
    recommendation, *measured_parts, others = study_pages.advice_page(advice.titled()).parts
    rendering.show_lines(recommendation.sentences)
    for section in measured_parts:
        st.subheader(section.title)
        rendering.show_part(section, section.title)
    if advice.example is None:
        st.caption("No design with this mechanism is measured.")
    else:
        examples.show_button(advice.example)
    with st.expander("Systems with the same constraints, and designs of planner"):
        for table in others.tables:
            rendering.show_table(table)
