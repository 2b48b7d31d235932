"""The design space of coordination, which mechanism suits your constraints, and what each is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import streamlit as st
from plotly import graph_objects as go

from planner import recipes
from planner.errors import PlannerError
from planner.recipes import SPACE, Information, Resources, Separation
from planner_dashboard import session, show, worth

VIEWS: Final = ("Design space", "What coordination is worth", "How good must information be")
GIVEN: Final = "not stated"
CLEAR: Final = "rgba(0,0,0,0)"
TINTS: Final = {
    "reaction": "#c9c9c9",
    "priority ranking": "#e8b65c",
    "hierarchical partitioning / priority ranking": "#a9b56c",
    "hierarchical partitioning": "#5fae8c",
    "transparency": "#6fa8dc",
}


def page() -> None:
    """The page below its title."""
    st.markdown(
        "Control planes that decide without each other cost performance, money or responsiveness. Which way "
        "of coordinating fits follows from two constraints: what they *can* tell each other, and whether "
        "they decide over the same resources (Mukerjee 2018, chapter 1)."
    )
    tabs = st.tabs(VIEWS, key="recipes view", on_change="rerun")
    for tab, shown in zip(tabs, (_design_space, worth.designs, worth.curves), strict=True):
        if tab.open:
            with tab:
                shown()


# --- the design space ---------------------------------------------------------------------


def _design_space() -> None:
    _map()
    st.subheader("Yours")
    _yours()
    st.subheader("Systems that could coordinate otherwise")
    st.caption("by their constraints alone, whatever they do today")
    for one in recipes.review():
        if not one.same:
            allowed = " / ".join(map(str, one.recommended)) or "outside the recipes"
            st.markdown(
                f"- **{session.plain(one.system.name)}**: {one.system.mechanism} today, **{allowed}** by its "
                f"constraints: {session.plain(one.why)}"
            )


def _map() -> None:
    """Nine cells; the one that is chosen, and what is known of it."""
    chosen = show.chart(_space(), "space", on_select=True)
    points = chosen["selection"]["points"] if chosen else []
    if not points:
        st.caption(
            "Choose a cell to see its mechanism, the systems of the literature in it, and designs here."
        )
        return
    information, resources = points[0]["customdata"][:2]
    st.markdown(f"**{information} information, {resources} resources**")
    _advice(recipes.recommend(resources=resources, information=information))


def _space() -> go.Figure:
    """The design space, a square for each cell: only points of a scatter chart can be chosen."""
    known = recipes.table_1_1()
    across, up = list(Resources), list(Information)
    figure = go.Figure()
    for row, can in enumerate(up):
        for column, where in enumerate(across):
            name = " / ".join(map(str, SPACE[can, where]))
            figure.add_shape(
                type="rect", x0=column - 0.48, x1=column + 0.48, y0=row - 0.47, y1=row + 0.47,
                fillcolor=TINTS[name], line_width=0, layer="below",
            )  # fmt: skip
    cells = [(row, column) for row in range(len(up)) for column in range(len(across))]
    texts, about = [], []
    for row, column in cells:
        can, where = up[row], across[column]
        here = [one for one in known if one.information is can and where in one.resources]
        # names are so long that a narrow page breaks them at their spaces
        names = "<br>/ ".join(str(one).replace(" ", "<br>") for one in SPACE[can, where])
        count = f"{len(here)} system{'s' * (len(here) != 1)}" if here else "no prior work"
        texts.append(f"<b>{names}</b><br><i>{count}</i>")
        systems = "<br>".join(f"{one.name}: {one.mechanism} today" for one in here) or "no prior work"
        about.append([str(can), str(where), systems])
    figure.add_trace(
        go.Scatter(
            x=[column for _, column in cells],
            y=[row for row, _ in cells],
            mode="markers+text",
            text=texts,
            textfont={"color": "#111111", "size": 12},
            customdata=about,
            hovertemplate="%{customdata[2]}<extra></extra>",
            # as large as a cell of a narrow page, and seen only when chosen
            marker={"symbol": "square", "size": 84, "color": "#ffffff", "opacity": 0},
            selected={"marker": {"opacity": 0.45}, "textfont": {"color": "#111111"}},
            unselected={"marker": {"opacity": 0}, "textfont": {"color": "#111111"}},
        )
    )
    figure.update_xaxes(
        tickvals=list(range(len(across))), ticktext=[str(one) for one in across], range=[-0.5, 2.5],
        title_text="resources", showgrid=False, zeroline=False, fixedrange=True, side="top",
    )  # fmt: skip
    figure.update_yaxes(
        tickvals=list(range(len(up))), ticktext=[str(one) for one in up], range=[2.5, -0.5],
        title_text="information", showgrid=False, zeroline=False, fixedrange=True, automargin=True,
        tickangle=-90,
    )  # fmt: skip
    return figure.update_layout(
        height=420, margin={"l": 10, "r": 10, "t": 10, "b": 10}, showlegend=False, dragmode=False,
        hovermode="closest", clickmode="event+select", paper_bgcolor=CLEAR, plot_bgcolor=CLEAR,
    )  # fmt: skip


# --- what constraints allow ---------------------------------------------------------------


def _yours() -> None:
    """Constraints of one's own, and what they allow."""
    columns = st.columns(3)
    where = columns[0].selectbox(
        "resources",
        [str(one) for one in Resources],
        help="do the control planes decide over the same devices?",
    )
    split = columns[1].selectbox(
        "why control is split", [GIVEN, *(str(one) for one in Separation)], help="what separates them"
    )
    told = columns[2].selectbox(
        "information that can be told",
        [GIVEN, *(str(one) for one in Information)],
        help="stated, or else what the separation allows",
    )
    times = st.columns(3)
    decide = times[0].number_input("seconds that a good decision takes", value=None, min_value=0.0)
    react = times[1].number_input("seconds that events leave", value=None, min_value=1e-9, format="%g")
    try:
        advice = recipes.recommend(
            resources=where,
            information=None if told == GIVEN else told,
            separation=None if split == GIVEN else split,
            decide_s=decide,
            react_s=react,
        )
    except PlannerError as error:
        if split == told == GIVEN and decide is None and react is None:
            st.info("Say why control is split, or what can be told.")
        else:
            session.said(error)
    else:
        _advice(advice)


def _advice(advice: recipes.Recommendation) -> None:
    names = " / ".join(str(mechanism) for mechanism in advice.mechanisms) or "outside the recipes"
    st.success(f"**{names}**")
    for sentence in advice.why:
        st.markdown("- " + session.plain(sentence))
    left, right = st.columns(2)
    _table(
        left,
        "systems with the same constraints",
        [{"system": one.name, "context": one.context, "today": str(one.mechanism)} for one in advice.known],
    )
    _table(
        right,
        "designs here that coordinate so",
        [{"system": system, "design": design} for system, design in advice.designs],
    )


def _table(where: Any, title: str, rows: Sequence[dict[str, str]]) -> None:
    where.caption(title if rows else f"{title}: none")
    if rows:
        where.dataframe(rows, hide_index=True)
