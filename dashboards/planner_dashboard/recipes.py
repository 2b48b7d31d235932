"""The design space of coordination, and which mechanism suits your constraints."""

from __future__ import annotations

import streamlit as st
from plotly import graph_objects as go

from planner import recipes
from planner.errors import PlannerError
from planner.recipes import SPACE, Information, Resources, Separation
from planner_dashboard import session, show

GIVEN = "not stated"
TINTS = {
    "reaction": 0.0,
    "priority ranking": 0.33,
    "hierarchical partitioning / priority ranking": 0.5,
    "hierarchical partitioning": 0.66,
    "transparency": 1.0,
}
SCALE = [(0.0, "#bbbbbb"), (0.33, "#e8b65c"), (0.5, "#9db27a"), (0.66, "#5fae8c"), (1.0, "#6fa8dc")]


def page() -> None:
    """The page, from top to bottom."""
    st.title("Recipes")
    st.markdown(
        "Control planes that decide without each other cost performance, money or responsiveness. Which way "
        "of coordinating fits follows from two constraints: what they *can* tell each other, and whether "
        "they decide over the same resources (Mukerjee 2018, chapter 1)."
    )
    show.chart(_space(), "space")
    st.subheader("Yours")
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
    st.subheader("Systems that could coordinate otherwise")
    st.caption("by their constraints alone, whatever they do today")
    rows = [
        {
            "system": one.system.name,
            "today": str(one.system.mechanism),
            "by constraint": " / ".join(map(str, one.recommended)) or "outside the recipes",
            "because": one.why,
        }
        for one in recipes.review()
        if not one.same
    ]
    st.dataframe(rows, hide_index=True)


def _advice(advice: recipes.Recommendation) -> None:
    names = " / ".join(str(mechanism) for mechanism in advice.mechanisms) or "outside the recipes"
    st.success(f"**{names}**")
    for sentence in advice.why:
        st.markdown("- " + session.plain(sentence))
    left, right = st.columns(2)
    left.caption("systems with the same constraints")
    left.dataframe(
        [{"system": one.name, "context": one.context, "today": str(one.mechanism)} for one in advice.known],
        hide_index=True,
    )
    right.caption("designs here that coordinate so")
    right.dataframe(
        [{"system": system, "design": design} for system, design in advice.designs], hide_index=True
    )


def _space() -> go.Figure:
    """Nine cells, each with its mechanism and the systems of the literature in it."""
    across, up = list(Resources), list(Information)
    known = recipes.table_1_1()
    tint, text, hover = [], [], []
    for can in up:
        names = [" / ".join(map(str, SPACE[can, where])) for where in across]
        here = [
            [one for one in known if one.information is can and where in one.resources] for where in across
        ]
        tint.append([TINTS[name] for name in names])
        text.append(
            [
                f"<b>{name}</b><br>" + ("<br>".join(_short(one.name) for one in ones) or "no prior work")
                for name, ones in zip(names, here, strict=True)
            ]
        )
        hover.append(
            [
                "<br>".join(f"{one.name}: {one.context}, {one.mechanism} today" for one in ones)
                or "no prior work"
                for ones in here
            ]
        )
    figure = go.Figure(
        go.Heatmap(
            x=[f"{where} resources" for where in across],
            y=[f"{can} information" for can in up],
            z=tint,
            text=text,
            texttemplate="%{text}",
            textfont={"color": "#111111", "size": 12},
            customdata=hover,
            hovertemplate="%{customdata}<extra></extra>",
            colorscale=SCALE,
            zmin=0,
            zmax=1,
            showscale=False,
            xgap=4,
            ygap=4,
        )
    )
    return figure.update_layout(height=560, margin={"l": 10, "r": 10, "t": 10, "b": 10})


def _short(name: str) -> str:
    return name if len(name) <= 34 else name[:33] + "…"
