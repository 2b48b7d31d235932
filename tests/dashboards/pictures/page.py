"""A page with pictures of hand-made drawings, which the tests of this folder run in a browser."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from planner.contract.drawing import NetworkMap, Timeline
from planner_dashboard import pictures

MARKUP = "<img src=x onerror=alert(1)>"
PLACES = {
    "Oslo": (59.9, 10.8), "Paris": (48.9, 2.4), "Rome": (41.9, 12.5), "Kyiv": (50.5, 30.5),
    MARKUP: (53.0, 14.0),
}  # fmt: skip
LINES = (
    ("Oslo", "Paris", 30.0), ("Oslo", "Kyiv", 55.0), ("Paris", "Rome", 250.0), ("Rome", "Kyiv", 90.0),
    ("Paris", MARKUP, 70.0), (MARKUP, "Kyiv", 10.0),
)  # fmt: skip


def network(*, share: float = 1.0, without: str = "") -> NetworkMap:
    """Return a network on a map; loads are a share of those in LINES."""
    nodes = pd.DataFrame(
        [(name, *position, 1500.0 if name == "Kyiv" else 0.0) for name, position in PLACES.items()],
        columns=["node", "latitude", "longitude", "lost"],
    )
    rows = []
    for tail, head, load in LINES:
        element = f"{tail} - {head}"
        if element != without:
            rows += [
                (tail, head, share * load, element, 10_000.0),
                (head, tail, share * load / 2, element, 10_000.0),
            ]
    links = pd.DataFrame(rows, columns=["tail", "head", "value", "element", "width"])
    return NetworkMap(
        title=f"Links by utilization {MARKUP}",
        nodes=nodes,
        links=links,
        value="utilization",
        unit="%",
        limit=100.0,
        width_unit="Mbit/s",
        lost_unit="Mbit/s",
        link_kind="link",
        node_kind="node",
    )


def timeline() -> Timeline:
    """Return circuits of three racks."""
    rows = [
        (f"rack {lane}", 10.0 * i, 10.0 * i + 8, f"rack {(lane + i) % 3}", f"{lane}-{i}")
        for lane in range(3)
        for i in range(5)
    ]
    frame = pd.DataFrame(rows, columns=["lane", "start", "end", "what", "element"])
    return Timeline(title="Circuits", frame=frame, unit="us", lanes="rack", what="circuit to", kind="circuit")


def page() -> None:
    """Show the picture that the address names, and what is selected."""
    st.set_page_config(layout="wide")
    shown = st.query_params.get("picture", "network")
    selected = st.session_state.get("selected", ("", ""))
    full, failed = network(), network(share=1.1, without="Paris - Rome")
    result = None
    if shown == "network":
        drawing = failed if st.toggle("fail") else full
        result = pictures.show_network(drawing, key="picture", before=full, selected=selected[1])
    elif shown == "difference":
        result = pictures.show_difference(full, failed, key="picture")
    elif shown == "frames":
        moments = [
            pictures.Frame(
                label=f"{i} s",
                drawing=failed if i == 2 else network(share=1 + i / 10),
                note="" if i != 2 else "fails",
            )
            for i in range(4)
        ]
        curve = pictures.MetricCurve(
            label="Max link utilization", unit="%", values=[250.0, 275.0, None, 325.0]
        )
        result = pictures.show_frames(moments, key="picture", curve=curve)
    else:
        result = pictures.show_timeline(timeline(), key="picture", selected=selected[1])
    if result is not None:
        st.session_state["selected"] = (result.kind, result.name)
        st.rerun()
    st.text(f"selected: {selected}")


if __name__ == "__main__":
    page()
