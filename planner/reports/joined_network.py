"""Nodes and links of the drawings that a picture compares, in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import NetworkMap

MAX_LINKS: Final = 20_000
"""Of a picture; of more, those with the largest values are drawn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedNetwork:
    """Nodes and links that any of some drawings has, in an order that depends on no values.

    drawings  of the same network: the one that comes first sets the order
    nodes     rows of the last drawing that has them, by node
    links     rows of the last drawing that has them, by tail, head, element and number among parallel ones
    keyed     links of each drawing by the same index, by the drawing's identity
    left_out  number of links with small values that are not drawn
    """

    drawings: Sequence[NetworkMap]
    nodes: pd.DataFrame
    links: pd.DataFrame
    keyed: Mapping[int, pd.DataFrame]
    left_out: int = 0

    @property
    def last(self) -> NetworkMap:
        """The drawing that comes last."""
        return self.drawings[-1]

    def links_of(self, drawing: NetworkMap) -> pd.DataFrame:
        """Return the links of one of the drawings by the network's index; values of absent ones are NaN."""
        return self.keyed[id(drawing)].reindex(self.links.index)

    def nodes_of(self, drawing: NetworkMap) -> pd.DataFrame:
        """Return the nodes of one of the drawings by the network's index."""
        return drawing.nodes.set_index("node").reindex(self.nodes.index)

    def absent_links(self, drawing: NetworkMap) -> list[int]:
        """Return the places of links that a drawing does not have."""
        return np.flatnonzero(~self.links.index.isin(self.keyed[id(drawing)].index)).tolist()

    def absent_nodes(self, drawing: NetworkMap) -> list[int]:
        """Return the places of nodes that a drawing does not have."""
        return np.flatnonzero(~self.nodes.index.isin(drawing.nodes["node"])).tolist()


def join(*drawings: NetworkMap) -> JoinedNetwork:
    """Return the network of some drawings, with its busiest links where there are too many."""
    keyed = {id(drawing): _keyed(drawing.links) for drawing in drawings}
    nodes, links = drawings[0].nodes.set_index("node"), keyed[id(drawings[0])]
    for drawing in drawings[1:]:
        nodes = _joined(nodes, drawing.nodes.set_index("node"))
        links = _joined(links, keyed[id(drawing)])
    left_out = len(links) - MAX_LINKS
    if left_out > 0:
        order = np.argsort(-links["value"].fillna(-1.0).to_numpy(float), kind="stable")
        links = links.iloc[np.sort(order[:MAX_LINKS])]
    return JoinedNetwork(drawings=drawings, nodes=nodes, links=links, left_out=max(0, left_out), keyed=keyed)


def _keyed(links: pd.DataFrame) -> pd.DataFrame:
    """Return links indexed by ends, element, and their number among links with the same ones."""
    named = links.assign(element="") if "element" not in links else links
    names = ["tail", "head", "element"]
    keys = named[names].astype(str)
    keys["number"] = keys.groupby(names).cumcount()
    return named.set_index(pd.MultiIndex.from_frame(keys))


def _joined(first: pd.DataFrame, then: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `then`, and those that only `first` has, in the order of `first`."""
    if first.index.equals(then.index):
        return then
    index = first.index.append(then.index.difference(first.index, sort=False))
    gone = first.loc[first.index.difference(then.index, sort=False)]
    return pd.concat([then, gone]).reindex(index)
