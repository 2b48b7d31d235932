"""Data of a network's picture as the browser gets it: its geometry, which seldom changes, and its values."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import NetworkMap
from planner.formatting import amount_or_number, number, units_from
from planner.reports.basemap import project
from planner.reports.joined_network import JoinedNetwork
from planner.reports.loss_labels import lost_verb
from planner.reports.network_layout import COAST_STEP, Layout, lay_out
from planner.reports.network_scale import (
    NODE_CHANGES,
    Scale,
    difference_scale,
    largest_value,
    node_scale,
    scale_of,
)

MAX_LAYOUTS: Final = 16

Data = dict[str, Any]


# --- geometry -----------------------------------------------------------------------------


def geometry(network: JoinedNetwork) -> tuple[str, str]:
    """Return a hash of nodes, links and the map below them, and all of these as JSON text."""
    nodes, links, drawing = network.nodes, network.links, network.last
    index_of = pd.Series(np.arange(len(nodes)), index=nodes.index)
    names = [str(name) for name in nodes.index]
    tails, heads = index_of.loc[links["tail"]].tolist(), index_of.loc[links["head"]].tolist()
    data: Data = {
        "nodes": {"name": names},
        "links": {
            "tail": tails,
            "head": heads,
            "element": [str(name) for name in links["element"].fillna("")],
        },
        "linkKind": drawing.link_kind,
        "nodeKind": drawing.node_kind,
    }
    if "label" in nodes:
        labels = nodes["label"].fillna(nodes.index.to_series())
        data["nodes"]["label"] = [str(label) for label in labels]
    if "element" in nodes:
        data["nodes"]["element"] = [str(name) for name in nodes["element"].fillna("")]
    if "group" in nodes:
        codes, groups = pd.factorize(nodes["group"].fillna("").astype(str))
        data["nodes"] |= {"group": codes.tolist(), "groups": list(groups)}
    columns = [name for name in ("latitude", "longitude", "x", "y") if name in nodes]
    layout = _layout(
        tuple(names),
        tuple(columns),
        nodes[columns].to_numpy(float).tobytes(),
        (*tails, *heads) if nodes[columns].isna().any(axis=None) or not columns else (),
    )
    data |= {"x": _rounded(layout.places[:, 0], 1), "y": _rounded(layout.places[:, 1], 1)}
    if layout.coast is not None and layout.limits is not None:
        data |= {
            "limits": [round(limit) for limit in layout.limits],
            "coastStep": COAST_STEP,
            "land": [_encoded(ring) for ring in layout.coast.land],
            "borders": [_encoded(line) for line in layout.coast.borders],
        }
    text = json.dumps(data, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16], text


def place_of(drawing: NetworkMap, text: str) -> dict[str, float] | None:
    """Return the place that a click selects on a network: latitude and longitude, or x and y.

    text     x and y in the plane of the picture
    returns  None where nodes have no places of their own: their links place them
    """
    nodes = drawing.nodes
    columns = [name for name in ("latitude", "longitude", "x", "y") if name in nodes]
    known = nodes[nodes[columns].notna().all(axis=1)]
    if not columns or len(known) < len(nodes) or not len(nodes):
        return None
    layout = lay_out(nodes, drawing.links[["tail", "head"]])
    x, y = (float(part) for part in text.split())
    if layout.coast is not None:
        degrees = project(nodes["latitude"].to_numpy(float), nodes["longitude"].to_numpy(float))
        longitude, south = _in_plane(layout.places, degrees, x, y, up=1.0)
        latitude = math.degrees(math.atan(math.sinh(math.radians(-south))))
        return {"latitude": round(latitude, 4), "longitude": round((longitude + 180) % 360 - 180, 4)}
    if not {"x", "y"} <= set(columns):
        return None
    positions = nodes[["x", "y"]].to_numpy(float)
    across, down = _in_plane(layout.places, positions, x, y, up=-1.0)
    return {"x": round(across, 4), "y": round(down, 4)}


def _in_plane(
    places: NDArray[np.float64], positions: NDArray[np.float64], x: float, y: float, *, up: float
) -> tuple[float, float]:
    """Return the position of a point of the picture, by the nodes' places there and their positions.

    up  -1 where positions rise upwards, 1 where they fall
    """
    axis = int(np.ptp(places, axis=0).argmax())
    extent = float(np.ptp(places[:, axis]))
    step = float(np.ptp(positions[:, axis])) / extent if extent else 1.0
    across, down = positions[0] + step * np.array([1.0, up]) * (np.array([x, y]) - places[0])
    return float(across), float(down)


@lru_cache(maxsize=MAX_LAYOUTS)
def _layout(
    names: tuple[str, ...], columns: tuple[str, ...], positions: bytes, ends: tuple[int, ...]
) -> Layout:
    table = np.frombuffer(positions).reshape(len(names), len(columns))
    nodes = pd.DataFrame(table, columns=list(columns)).assign(node=names)
    half = len(ends) // 2
    links = pd.DataFrame({"tail": [names[i] for i in ends[:half]], "head": [names[i] for i in ends[half:]]})
    return lay_out(nodes, links)


def _encoded(line: NDArray[np.int64]) -> str:
    """Return integer points as text: steps from point to point, each in characters of five bits.

    source  Google's polyline format
    """
    steps = np.diff(line, axis=0, prepend=np.zeros((1, 2), np.int64)).ravel()
    letters = []
    for step in np.where(steps < 0, ~(steps << 1), steps << 1).tolist():
        remaining = step
        while remaining >= 32:
            letters.append(chr((32 | (remaining & 31)) + 63))
            remaining >>= 5
        letters.append(chr(remaining + 63))
    return "".join(letters)


# --- values -------------------------------------------------------------------------------


def values(network: JoinedNetwork, *, selected: str, height: int) -> Data:
    """Return the content of the picture of the last drawing; of two, the first one is the plan before."""
    drawing, *others = reversed(network.drawings)
    data = _common(network, scale_of(drawing), drawing, selected, height) | _figures_of(network, drawing)
    if others:
        data["was"] = _figures(network.links_of(others[0])["value"])
        if "value" in others[0].nodes:
            data["nodeWas"] = _figures(network.nodes_of(others[0])["value"])
    return data


def differences(network: JoinedNetwork, *, selected: str, height: int) -> Data:
    """Return the content of the picture of the change between two drawings."""
    before, after = network.drawings
    was, now = network.links_of(before)["value"], network.links_of(after)["value"]
    scale = difference_scale(after)
    data = _common(network, scale, after, selected, height) | _figures_of(network, after)
    data |= {
        "title": f"Change of {after.value}",
        "colours": "difference",
        "values": _figures(now - was),
        "was": _figures(was),
        "now": _figures(now),
        "new": network.absent_links(before),
        "newNodes": network.absent_nodes(before),
        "unitOfChange": "points" if after.unit == "%" else after.unit,
    }
    if "value" in before.nodes and "value" in after.nodes:
        node_was, node_now = network.nodes_of(before)["value"], network.nodes_of(after)["value"]
        data |= {
            "nodeValues": _figures(node_now - node_was),
            "nodeEdges": list(NODE_CHANGES),
            "nodeWas": _figures(node_was),
            "nodeNow": _figures(node_now),
        }
    return data


def _common(network: JoinedNetwork, scale: Scale, drawing: NetworkMap, selected: str, height: int) -> Data:
    """Return the common content of all frames of a picture."""
    data: Data = {
        "title": drawing.title,
        "value": drawing.value,
        "unit": drawing.unit,
        "hasLimit": drawing.limit is not None,
        "colours": "bands",
        "edges": list(scale.edges),
        "labels": list(scale.labels),
        "selected": selected,
        "height": height,
        "leftOut": network.left_out,
        "directed": drawing.directed,
    }
    if "width" in network.links:
        codes, different = pd.factorize(network.links["width"].fillna(0.0).clip(lower=0.0))
        largest = drawing.widest or float(different.max()) or 1.0
        data |= {
            "width": ",".join(map(str, codes.tolist())),
            "widths": _rounded(np.sqrt(np.asarray(different, float) / largest), 3),
            "widthTexts": [amount_or_number(float(value), drawing.width_unit) for value in different],
        }
    if "size" in network.nodes:
        sizes = network.nodes["size"].fillna(0.0).clip(lower=0.0)
        data["sizes"] = _rounded(np.sqrt(sizes / (float(sizes.max()) or 1.0)), 3)
    return data


def _figures_of(network: JoinedNetwork, drawing: NetworkMap) -> Data:
    """Return the values of one drawing."""
    links, nodes = network.links_of(drawing), network.nodes_of(drawing)
    data: Data = {
        "values": _figures(links["value"]),
        "gone": network.absent_links(drawing),
        "goneNodes": network.absent_nodes(drawing),
        "lost": _amounts(links.get("lost"), drawing.lost_unit),
        "added": _amounts(links.get("added"), drawing.width_unit),
        "built": _built_links(links),
        "notes": _notes(links.get("note")),
        "nodeLost": _amounts(nodes.get("lost"), drawing.lost_unit),
        "nodeLostAs": _words_of_losses(drawing, nodes),
        "nodeNotes": _notes(nodes.get("note")),
        "losses": _losses(network, drawing),
    }
    if "value" in nodes:
        data |= {"nodeValues": _figures(nodes["value"]), "nodeEdges": list(node_scale(drawing).edges)}
    return data


def _losses(network: JoinedNetwork, drawing: NetworkMap) -> Data:
    """Return the amounts that labels sum, by position, and the total of all of them, drawn or not."""
    of_nodes, of_links = drawing.amounts_lost()
    total = float(of_nodes.sum() + of_links.sum())
    if total <= 0:
        return {}
    shown = {"nodes": network.nodes_of(drawing), "links": network.links_of(drawing)}
    data: Data = {
        "total": total,
        "totalText": amount_or_number(total, drawing.lost_unit),
        "verb": lost_verb(drawing),
        "noun": drawing.lost_noun,
        "units": [[name, size] for name, size in units_from(drawing.lost_unit)],
    }
    for kind, frame in shown.items():
        is_labelled = "lost" in frame and (kind == "nodes" or not drawing.lost_twice)
        amounts = frame["lost"].fillna(0.0).to_numpy(float) if is_labelled else np.zeros(0)
        data[kind] = {str(i): float(amounts[i]) for i in np.flatnonzero(amounts > 0)}
    return data


def _built_links(links: pd.DataFrame) -> list[int]:
    """Return the places of links that a plan builds: all of their width is added."""
    if "added" not in links:
        return []
    added, width = (links[name].fillna(0.0).to_numpy(float) for name in ("added", "width"))
    return np.flatnonzero((added > 0) & (added >= width)).tolist()


def _figures(column: pd.Series) -> str:
    """Return values with four digits between commas; nothing where they are unknown."""
    return ",".join("" if math.isnan(value) else f"{value:.4g}" for value in column.to_numpy(float).tolist())


def _amounts(column: pd.Series | None, unit: str) -> dict[str, str]:
    """Return the amounts above 0 with their unit, by place."""
    if column is None:
        return {}
    amounts = column.fillna(0.0).to_numpy(float)
    return {str(i): amount_or_number(float(amounts[i]), unit) for i in np.flatnonzero(amounts > 0)}


def _words_of_losses(drawing: NetworkMap, nodes: pd.DataFrame) -> dict[str, str]:
    """Return the users' losses at a node, by position, if not just "lost"."""
    if "lost" not in nodes:
        return {}
    words = drawing.losses_of(nodes)
    indices = np.flatnonzero(nodes["lost"].fillna(0.0).to_numpy(float) > 0)
    return {str(i): words[i] for i in indices if words[i] != "lost"}


def _notes(column: pd.Series | None) -> str:
    """Return texts, one a line; nothing where there is none at all."""
    if column is None:
        return ""
    return "\n".join(" ".join(text.split()) if isinstance(text, str) else "" for text in column).rstrip()


def _rounded(column: Any, digits: int) -> list[float]:
    rounded: list[float] = np.round(np.asarray(column, dtype=float), digits).tolist()
    return rounded


# --- frames -------------------------------------------------------------------------------

MAX_FRAME_VALUES: Final = 1_000_000
"""Values of links in all frames that are sent; of more frames, every second or third one is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """The picture of one moment.

    label     of the moment: "12:00", "window 3"
    drawing   of the network; links that other frames have and this one has not are shown as failed
    marks     names of elements to emphasise
    note      a sentence on the moment, such as "Koblenz - Koeln fails"
    """

    label: str
    drawing: NetworkMap
    marks: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricCurve:
    """A metric over the frames of a picture.

    values   one for each frame; None where it is unknown
    largest  value that the axis reaches at least, so that curves beside each other have the same
    """

    label: str
    unit: str
    values: Sequence[float | None]
    largest: float | None = None


def frames_data(
    network: JoinedNetwork, frames: Sequence[Frame], curve: MetricCurve | None, *, selected: str, height: int
) -> Data:
    """Return the content of the player: the common part of all frames, and the values of each."""
    every = math.ceil(len(frames) * max(1, len(network.links)) / MAX_FRAME_VALUES)
    sent = range(0, len(frames), every)
    last = frames[-1].drawing
    largest = max(largest_value(frame.drawing) for frame in frames)
    data = _common(network, scale_of(last, largest=largest), last, selected, height)
    data["frames"] = [
        _figures_of(network, frames[i].drawing)
        | {
            "title": frames[i].drawing.title,
            "label": frames[i].label,
            "marks": list(frames[i].marks),
            "note": frames[i].note,
        }
        for i in sent
    ]
    data["framesLeftOut"] = len(frames) - len(sent)
    if curve is not None:
        data["curve"] = {
            "label": curve.label,
            "unit": curve.unit,
            "values": [curve.values[i] for i in sent],
            "texts": [number(curve.values[i]) for i in sent],
            "largest": curve.largest,
        }
    return data
