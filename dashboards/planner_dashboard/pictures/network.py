"""Pictures of a network in which elements can be selected: one plan, a change of plans, plans over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.contract.drawing import NetworkMap
from planner.reports.joined_network import JoinedNetwork, join
from planner_dashboard.pictures import payload
from planner_dashboard.pictures.component import show_component
from planner_dashboard.pictures.payload import Frame, MetricCurve
from planner_dashboard.pictures.selection import Selected

HEIGHT: Final = 640


def show_network(
    drawing: NetworkMap,
    *,
    key: str,
    before: NetworkMap | None = None,
    selected: str = "",
    height: int = HEIGHT,
    is_placing: bool = False,
) -> Selected | None:
    """Show a network; return the user's selection in it since the page's last run.

    key       of the picture on its page; it keeps its zoom as long as the key stays
    before    the picture of another plan: links and nodes that only it has are shown as failed
    selected  name of the element that is shown as selected
    height    at most, pixels; a narrow page has less
    is_placing  a click beside all elements selects the place there (`payload.place_of`), of the kind "place"
    """
    network = join(drawing) if before is None else join(before, drawing)
    data = payload.values(network, selected=selected, height=height)
    return _show(network, key, data | {"placing": True} if is_placing else data)


def show_difference(
    before: NetworkMap, after: NetworkMap, *, key: str, selected: str = "", height: int = HEIGHT
) -> Selected | None:
    """Show the change of values between two plans on one map; arguments as those of `show_network`."""
    network = join(before, after)
    return _show(network, key, payload.differences(network, selected=selected, height=height))


def show_frames(
    frames: Sequence[Frame],
    *,
    key: str,
    curve: MetricCurve | None = None,
    selected: str = "",
    height: int = HEIGHT,
    clock: str = "",
) -> Selected | None:
    """Show a player of moments, all sent at once, with the curve of a metric below it.

    clock  players of the same clock on a page show the same moment; "" for a player of its own
    """
    drawings = [frame.drawing for frame in frames]
    wholes = [drawing.whole for drawing in drawings if drawing.whole is not None]
    network = join(*wholes[:1], *drawings)
    data = payload.frames_data(network, frames, curve, selected=selected, height=height)
    return _show(network, key, data | {"clock": clock})


def _show(network: JoinedNetwork, key: str, data: payload.Data) -> Selected | None:
    name, geometry = payload.geometry(network)
    return show_component(key, name, geometry, data)
