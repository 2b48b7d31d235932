"""The map of a user's network: nodes, links and demands are drawn, set, moved and removed, or by forms.

A click on the map changes the network by its mode; the forms beside it do the same by the keyboard. Every
change is one step of the draft's undo and redo, and its tables are checked as files are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import streamlit as st

from planner.contract.drawing import NetworkMap
from planner.contract.system import System
from planner.formatting import counted
from planner.scenarios.catalogue import find_system
from planner_dashboard import pictures
from planner_dashboard.fields import column_label
from planner_dashboard.own_data import network_edits as edits
from planner_dashboard.own_data.drafts import Draft
from planner_dashboard.own_data.network_edits import Place
from planner_dashboard.pictures import Selected
from planner_dashboard.session import escape_markdown

SELECT, LINK, NODE, REMOVE = "Select", "Draw links", "Place nodes", "Remove"
HINTS: Final = {
    SELECT: "Click a node or a link to change it.",
    LINK: "Click the two ends of a new link, one after the other.",
    NODE: "Click where a new node is to be; or click a node, then the place that it moves to.",
    REMOVE: "Click a node or a link: it is removed, a node with its links and demands.",
}
HEIGHT: Final = 620
SELECTED, START, MOVING = "network selected", "network start", "network moving"


def show_editor(draft: Draft, drawing: NetworkMap | None) -> None:
    """Show the map and the forms of a draft's network.

    drawing  of the last valid tables; None where there are none yet
    """
    system = find_system(draft.system)
    mode = st.segmented_control(
        "A click on the map", list(HINTS), default=SELECT, required=True, key="network mode"
    )
    st.caption(HINTS[mode])
    left_column, right = st.columns([7, 4], gap="medium")
    with left_column:
        if drawing is None:
            st.info("The map appears once the tables are valid. The forms work at any time.")
        else:
            _show_map(draft, system, drawing, mode)
    with right:
        _show_forms(draft, system)


def _show_map(draft: Draft, system: System, drawing: NetworkMap, mode: str) -> None:
    state = st.session_state
    selected = state.get({LINK: START, NODE: MOVING}.get(mode, SELECTED))
    click = pictures.show_network(
        drawing,
        key="network editor",
        selected=selected[1] if selected else "",
        height=HEIGHT,
        is_placing=mode == NODE,
    )
    if click is not None:
        _take_click(draft, system, drawing, mode, click)
        st.rerun()


def _take_click(draft: Draft, system: System, drawing: NetworkMap, mode: str, click: Selected) -> None:
    """Change the network by a click in a mode."""
    state = st.session_state
    element = (click.kind, click.name)
    is_node = click.name in edits.node_names(draft.frames)
    if mode == REMOVE and click.name:
        _remove(draft, click.name, is_node=is_node)
    elif mode == LINK and is_node:
        start = state.get(START)
        if start is None or start == element:
            state[START] = None if start == element else element
        else:
            state[START] = None
            _add_link(draft, system, start[1], click.name)
    elif mode == NODE and click.kind == "place":
        place = pictures.place_of(drawing, click.name)
        moved = state.pop(MOVING, None)
        if moved is not None:
            if place is not None:
                draft.change_all(edits.move_node(draft.frames, moved[1], Place(**place)))
        else:
            name = _new_name(edits.node_names(draft.frames))
            draft.change_all(edits.add_node(draft.frames, name, Place(**(place or {}))))
            state[SELECTED] = ("node", name)
    elif mode == NODE and is_node:
        state[MOVING] = state[SELECTED] = element
    else:
        state[SELECTED] = element if click.name and click.kind != "place" else None


def _new_name(names: Sequence[str]) -> str:
    candidates = (f"new {number}" for number in range(1, len(names) + 2))
    return next(name for name in candidates if name not in names)


def _remove(draft: Draft, name: str, *, is_node: bool) -> None:
    change = edits.remove_node if is_node else edits.remove_link
    draft.change_all(change(draft.frames, name))
    st.session_state[SELECTED] = None


def _add_link(draft: Draft, system: System, tail: str, head: str) -> None:
    """Add a link with the usual figures of the others, and select it."""
    columns = edits.number_columns(system, draft.frames)
    usual = edits.usual_values(draft.frames, columns)
    values = {name: value for name, value in usual.items() if value is not None}
    both = edits.is_usually_both_ways(draft.frames)
    draft.change_all(edits.add_link(draft.frames, tail, head, values, both_ways=both))
    name = next(
        name for name in edits.link_names(draft.frames)
        if name in (f"{tail}->{head}", f"{tail}<->{head}", f"{head}<->{tail}")
    )  # fmt: skip
    st.session_state[SELECTED] = ("link", name)


# --- forms --------------------------------------------------------------------------------


def _show_forms(draft: Draft, system: System) -> None:
    frames, state = draft.frames, st.session_state
    nodes, links = edits.node_names(frames), edits.link_names(frames)
    selected = state.get(SELECTED)
    options = [*nodes, *links]
    name = selected[1] if selected else None
    if name is not None and name not in options:  # of one direction, or one of several
        options.append(name)
    key = f"network find {draft.version} {name}"

    def find() -> None:
        state[SELECTED] = ("element", state[key]) if state[key] else None

    st.selectbox(
        "Node or link",
        options,
        index=options.index(name) if name else None,
        key=key,
        on_change=find,
        format_func=_shown,
        placeholder="Find a node or a link",
    )
    if name in nodes:
        _show_node(draft, str(name))
    elif name is not None and edits.rows_of_link(frames, name):
        _show_link(draft, system, name)
    with st.expander("Add a link"):
        _show_new_link(draft, system, nodes)
    with st.expander("Add a node"):
        _show_new_node(draft)
    with st.expander("Demands"):
        _show_demands(draft, nodes, str(name) if name in nodes else "")


def _show_node(draft: Draft, name: str) -> None:
    count = sum(name in link.replace("<->", "->").split("->") for link in edits.link_names(draft.frames))
    demands = len(edits.demand_names(draft.frames, name))
    st.caption(escape_markdown(f"{name}: {counted(count, 'links')}, {counted(demands, 'demands')}"))
    with st.form(f"network node {name} {draft.version}", border=False):
        text = st.text_input("Name", name, max_chars=80, key=f"network name {name} {draft.version}").strip()
        is_set = st.form_submit_button("Rename", width="stretch")
    if is_set and text and text != name:
        if text in edits.node_names(draft.frames):
            st.error("Another node has this name.")
        else:
            st.session_state[SELECTED] = ("node", text)
            _change(draft, lambda: edits.rename_node(draft.frames, name, text))
    st.button(
        f"Remove {escape_markdown(name)}",
        key="network remove node",
        on_click=partial(_remove, draft, name, is_node=True),
        width="stretch",
    )


def _show_link(draft: Draft, system: System, name: str) -> None:
    """Show the figures of a link, to be set for both directions at a time."""
    columns = edits.number_columns(system, draft.frames)
    values = edits.link_values(draft.frames, name, columns)
    with st.form(f"network link {name} {draft.version}", border=False):
        entered = _show_numbers(columns, values, f"network {name} {draft.version}")
        is_set = st.form_submit_button("Set", type="primary", width="stretch")
    if is_set and entered != values:
        draft.change_all(edits.set_link(draft.frames, name, entered))
        st.rerun()
    st.button(
        f"Remove {escape_markdown(_shown(name))}",
        key="network remove link",
        on_click=partial(_remove, draft, name, is_node=False),
        width="stretch",
    )


def _show_numbers(
    columns: Sequence[str], values: dict[str, float | None], key: str
) -> dict[str, float | None]:
    """Show a field for each figure of a link; return the values of the fields."""
    return {
        name: st.number_input(column_label(name), value=values[name], format="%g", key=f"{key} {name}")
        for name in columns
    }


def _show_new_link(draft: Draft, system: System, nodes: Sequence[str]) -> None:
    columns = edits.number_columns(system, draft.frames)
    with st.form(f"network new link {draft.version}", border=False):
        tail, head = _show_ends(nodes, ("From node", "To node"), f"network new link {draft.version}")
        both = st.toggle("Both directions", value=edits.is_usually_both_ways(draft.frames))
        usual = edits.usual_values(draft.frames, columns)
        entered = _show_numbers(columns, usual, f"network new {draft.version}")
        is_added = st.form_submit_button("Add the link", width="stretch")
    if not is_added:
        return
    if tail is None or head is None or tail == head:
        st.error("Choose two ends.")
        return
    values = {name: value for name, value in entered.items() if value is not None}
    _change(draft, lambda: edits.add_link(draft.frames, tail, head, values, both_ways=both))


def _show_ends(nodes: Sequence[str], labels: tuple[str, str], key: str) -> tuple[str | None, str | None]:
    first, second = (
        st.selectbox(label, nodes, index=None, key=f"{key} {label}", placeholder="Choose a node")
        for label in labels
    )
    return first, second


def _show_new_node(draft: Draft) -> None:
    has_degrees = not {"x", "y"} <= set(draft.frames.get(edits.NODES, ()))
    labels = ("Latitude", "Longitude") if has_degrees else ("x", "y")
    with st.form(f"network new node {draft.version}", border=False):
        name = st.text_input("Name", max_chars=80)
        first, second = (
            st.number_input(label, value=None, format="%g", placeholder="unknown") for label in labels
        )
        is_added = st.form_submit_button("Add the node", width="stretch")
    if not is_added:
        return
    if not name.strip() or name.strip() in edits.node_names(draft.frames):
        st.error("Give it a name that no other node has.")
        return
    columns = ("latitude", "longitude") if has_degrees else ("x", "y")
    place = Place(**dict(zip(columns, (first, second), strict=True)))
    _change(draft, lambda: edits.add_node(draft.frames, name.strip(), place))


def _show_demands(draft: Draft, nodes: Sequence[str], node: str) -> None:
    """Show a field that selects a demand, and its ends and rate; without one, those of a new demand."""
    demands = dict(edits.demand_names(draft.frames, node))
    row = st.selectbox(
        f"Demand of {node}" if node else "Demand",
        list(demands),
        index=None,
        format_func=lambda each: demands[each],
        key=f"network demand {draft.version} {node}",
        placeholder="A new demand, or one to move",
    )
    values: dict[str, Any] = {}
    if row is not None:
        values = edits.row_values(draft.frames[edits.DEMANDS], row)
    key = f"network demand {draft.version} {node} {row}"
    with st.form(key, border=False):
        source, target = (
            st.selectbox(
                label,
                nodes,
                index=nodes.index(str(values[column])) if str(values.get(column)) in nodes else None,
                placeholder="Choose a node",
                key=f"{key} {label}",
            )
            for label, column in (("From node", "source"), ("To node", "target"))
        )
        rate = st.number_input(
            column_label("rate_mbps"),
            min_value=0.0,
            value=values.get("rate_mbps"),
            format="%g",
            key=f"{key} rate",
        )
        is_set = st.form_submit_button("Add the demand" if row is None else "Set the demand", width="stretch")
    if row is not None:
        remove = partial(edits.remove_demand, draft.frames, row)
        st.button("Remove the demand", key=f"{key} remove", on_click=lambda: draft.change_all(remove()))
    if not is_set:
        return
    if source is None or target is None or source == target or rate is None:
        st.error("Choose two ends and a rate.")
        return
    _change(draft, lambda: edits.set_demand(draft.frames, row, source, target, rate))


def _change(draft: Draft, change: Callable[[], Any]) -> None:
    draft.change_all(change())
    st.rerun()


def _shown(name: str) -> str:
    return name.replace("<->", " – ").replace("->", " → ")
