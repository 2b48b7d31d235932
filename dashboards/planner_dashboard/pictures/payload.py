"""Data of a network's picture as the browser gets it: its geometry, which seldom changes, and its values."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.drawing import NetworkMap
from planner.formatting import amount_or_number
from planner.reports.network_layout import COAST_STEP, Layout, lay_out
from planner.reports.network_scale import scale_of

MAX_LINKS: Final = 20_000
"""Of a picture; of more, those with the largest values are sent."""
MAX_GEOMETRIES: Final = 16

Data = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Parts:
    """A picture's nodes and links: those of the drawing, and those that only the plan before has.

    nodes, links      as those of `NetworkMap`, rows of the drawing where it has them
    is_gone_node      whether a node is absent in the drawing, shape (nodes,)
    is_gone_link      whether a link is absent in the drawing, shape (links,)
    left_out          number of links with small values that are not drawn
    """

    nodes: pd.DataFrame
    links: pd.DataFrame
    is_gone_node: NDArray[np.bool_]
    is_gone_link: NDArray[np.bool_]
    left_out: int = 0


def parts_of(drawing: NetworkMap, before: NetworkMap | None) -> Parts:
    """Return nodes and links of a picture; their order depends on neither values nor on what is absent."""
    nodes, links = drawing.nodes, _keyed(drawing.links)
    is_gone_node, is_gone_link = np.zeros(len(nodes), bool), np.zeros(len(links), bool)
    if before is not None:
        nodes, is_gone_node = _joined(before.nodes.set_index("node"), nodes.set_index("node"))
        nodes = nodes.rename_axis("node").reset_index()
        links, is_gone_link = _joined(_keyed(before.links), links)
    left_out = len(links) - MAX_LINKS
    if left_out > 0:
        largest = np.sort(np.argsort(-links["value"].fillna(-1.0).to_numpy(float), kind="stable")[:MAX_LINKS])
        links, is_gone_link = links.iloc[largest], is_gone_link[largest]
    return Parts(
        nodes=nodes,
        links=links,
        is_gone_node=is_gone_node,
        is_gone_link=is_gone_link,
        left_out=max(0, left_out),
    )


def _keyed(links: pd.DataFrame) -> pd.DataFrame:
    """Return links indexed by ends, element, and their number among links with the same ones."""
    named = links.assign(element="") if "element" not in links else links
    names = ["tail", "head", "element"]
    keys = named[names].astype(str)
    keys["number"] = keys.groupby(names).cumcount()
    return named.set_index(pd.MultiIndex.from_frame(keys))


def _joined(before: pd.DataFrame, now: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Return the rows of both, in the order of `before`, and which of them `now` lacks."""
    if before.index.equals(now.index):
        return now, np.zeros(len(now), bool)
    index = before.index.append(now.index.difference(before.index, sort=False))
    gone = before.loc[before.index.difference(now.index, sort=False)]
    return pd.concat([now, gone]).reindex(index), ~index.isin(now.index)


def geometry(parts: Parts, drawing: NetworkMap) -> str:
    """Return nodes, links and the map below them, as JSON text; `id` is a hash of the rest."""
    nodes, links = parts.nodes, parts.links
    place = pd.Series(np.arange(len(nodes)), index=nodes["node"])
    texts: Data = {
        "nodes": {"name": [str(name) for name in nodes["node"]]},
        "links": {
            "tail": place.loc[links["tail"]].tolist(),
            "head": place.loc[links["head"]].tolist(),
            "element": [str(name) for name in links["element"].fillna("")],
        },
        "linkKind": drawing.link_kind,
        "nodeKind": drawing.node_kind,
    }
    if "label" in nodes:
        texts["nodes"]["label"] = [str(name) for name in nodes["label"].fillna(nodes["node"])]
    if "group" in nodes:
        groups = pd.factorize(nodes["group"].fillna("").astype(str))
        texts["nodes"] |= {"group": groups[0].tolist(), "groups": list(groups[1])}
    if "size" in nodes:
        largest = float(nodes["size"].max()) or 1.0
        texts["nodes"]["size"] = _rounded(np.sqrt(nodes["size"].fillna(0.0).clip(lower=0) / largest), 3)
    if "width" in links and links["width"].notna().any():
        width = links["width"].fillna(0.0).clip(lower=0)
        codes, different = pd.factorize(links["width"])
        texts["links"] |= {
            "width": _rounded(np.sqrt(width / (float(width.max()) or 1.0)), 3),
            "widthText": codes.tolist(),
            "widthTexts": [_text(value, drawing.width_unit) for value in different],
        }
    columns = [name for name in ("latitude", "longitude", "x", "y") if name in nodes]
    layout = _layout(
        tuple(texts["nodes"]["name"]),
        tuple(columns),
        nodes[columns].to_numpy(float).tobytes(),
        (*texts["links"]["tail"], *texts["links"]["head"]) if not columns else (),
    )
    texts |= {"x": _rounded(layout.places[:, 0], 1), "y": _rounded(layout.places[:, 1], 1)}
    if layout.coast is not None and layout.limits is not None:
        texts |= {
            "limits": [round(limit) for limit in layout.limits],
            "coastStep": COAST_STEP,
            "land": [_encoded(ring) for ring in layout.coast.land],
            "borders": [_encoded(line) for line in layout.coast.borders],
        }
    text = json.dumps(texts, separators=(",", ":"))
    return json.dumps({"id": hashlib.sha256(text.encode()).hexdigest()[:16]})[:-1] + "," + text[1:]


@lru_cache(maxsize=MAX_GEOMETRIES)
def _layout(names: tuple[str, ...], columns: tuple[str, ...], places: bytes, ends: tuple[int, ...]) -> Layout:
    nodes = pd.DataFrame({"node": names})
    table = np.frombuffer(places).reshape(len(names), len(columns))
    nodes = pd.concat([nodes, pd.DataFrame(table, columns=list(columns))], axis=1)
    half = len(ends) // 2
    links = pd.DataFrame({"tail": [names[i] for i in ends[:half]], "head": [names[i] for i in ends[half:]]})
    return lay_out(nodes, links)


def values(parts: Parts, drawing: NetworkMap, before: NetworkMap | None, selected: str, height: int) -> Data:
    """Return what a picture shows of its nodes and links."""
    nodes, links = parts.nodes, parts.links
    scale = scale_of(drawing)
    unit = drawing.unit
    data: Data = {
        "title": drawing.title,
        "value": drawing.value,
        "unit": unit,
        "hasLimit": drawing.limit is not None,
        "edges": list(scale.edges),
        "labels": list(scale.labels),
        "values": _figures(links["value"].where(~parts.is_gone_link)),
        "gone": np.flatnonzero(parts.is_gone_link).tolist(),
        "goneNodes": np.flatnonzero(parts.is_gone_node).tolist(),
        "lost": _amounts(links.get("lost"), drawing.lost_unit),
        "notes": _notes(links.get("note")),
        "nodeLost": _amounts(nodes.get("lost"), drawing.lost_unit),
        "nodeNotes": _notes(nodes.get("note")),
        "selected": selected,
        "height": height,
        "leftOut": parts.left_out,
    }
    if "value" in nodes:
        data["nodeValues"] = _figures(nodes["value"].where(~parts.is_gone_node))
    if before is not None:
        earlier = _keyed(before.links)["value"].reindex(links.index)
        data["was"] = _figures(earlier)
    return data


def _figures(column: pd.Series) -> list[float | None]:
    """Return values with four digits; None where they are unknown."""
    return [None if math.isnan(value) else float(f"{value:.4g}") for value in column.to_numpy(float)]


def _amounts(column: pd.Series | None, unit: str) -> dict[str, str]:
    """Return the amounts above 0 with their unit, by place."""
    if column is None:
        return {}
    amounts = column.fillna(0.0).to_numpy(float)
    return {str(i): _text(amounts[i], unit) for i in np.flatnonzero(amounts > 0)}


def _text(value: float | None, unit: str) -> str:
    known = value is not None and not math.isnan(value)
    return amount_or_number(float(value), unit) if known and value is not None else "unknown"


def _notes(column: pd.Series | None) -> dict[str, str]:
    return (
        {}
        if column is None
        else {str(i): str(text) for i, text in enumerate(column) if isinstance(text, str) and text}
    )


def _rounded(column: Any, digits: int) -> list[float]:
    return [float(value) for value in np.round(np.asarray(column, dtype=float), digits)]


def _encoded(line: NDArray[np.int64]) -> str:
    """Return integer points as text: steps from point to point, each in characters of five bits.

    source  Google's polyline format
    """
    steps = np.diff(line, axis=0, prepend=np.zeros((1, 2), np.int64)).ravel()
    letters = []
    for step in np.where(steps < 0, ~(steps << 1), steps << 1).tolist():
        rest = step
        while rest >= 32:
            letters.append(chr((32 | (rest & 31)) + 63))
            rest >>= 5
        letters.append(chr(rest + 63))
    return "".join(letters)
