"""Attributes that solvers of multi-commodity flow read from the problem of a system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.search.tolerances import ROUNDING
from planner_models.networks.tunnels import Tunnels

MIN_GAP: Final = ROUNDING  # relative; smaller differences may be rounding


class RouteRule(Protocol):
    """Rule for the routes of some demands: nodes that they must or must not pass."""

    @property
    def is_use(self) -> bool:
        """Whether routes must pass `nodes`, and not must not."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """One node, the ends of a link, or the nodes of a path, one after another."""

    @property
    def is_path(self) -> bool:
        """Whether it is one of several paths that a route may use."""

    @property
    def affinity(self) -> str:
        """Administrative group of links that it names instead of nodes; "" for none."""

    @property
    def links(self) -> frozenset[int]:
        """Rows of the links of the group."""

    def demands(self, problem: Any, /) -> Ints:
        """Return the demands that it holds for, by row."""


class FlowPlan(Protocol):
    """Plan made before; a search may start from its routes."""

    @property
    def flows(self) -> pd.DataFrame:
        """Traffic on links: tail, head, parallel, target, source where it is by demand, rate_mbps."""

    @property
    def shed(self) -> pd.DataFrame | None:
        """Rates of demands that are not served; None for none."""


class RoutedNetwork(Protocol):
    """Directed network, its routing metric, and the targets of its traffic; sizes as in `FlowProblem`."""

    @property
    def nodes(self) -> pd.DataFrame:
        """One row a node."""

    @property
    def links(self) -> pd.DataFrame:
        """One row a link."""

    @property
    def tail(self) -> Ints:
        """(E,) node where each link starts."""

    @property
    def head(self) -> Ints:
        """(E,) node where each link ends."""

    @property
    def weight(self) -> Floats:
        """(E,) routing metric of each link."""

    @property
    def targets(self) -> Ints:
        """(D,) nodes where traffic ends, ascending."""

    @property
    def distance(self) -> Floats:
        """(D, N) weight of the shortest path from each node to each of `targets`; inf without one."""


class FlowProblem(Protocol):
    """Demands over a capacitated directed network, and limits of their routes.

    N, E, K and D are the numbers of nodes, links, demands, and of targets of demands with a rate; arrays
    refer to nodes, links and demands by row.
    """

    @property
    def nodes(self) -> pd.DataFrame:
        """One row a node, with its name in the column `node`."""

    @property
    def links(self) -> pd.DataFrame:
        """One row a link; columns `cost` and `latency_ms` where links have them."""

    @property
    def node_index(self) -> pd.Index:
        """Names of the nodes, by row."""

    @property
    def demands(self) -> pd.DataFrame:
        """One row a demand, with the names of its ends in the columns `source` and `target`."""

    @property
    def tail(self) -> Ints:
        """(E,) node where each link starts."""

    @property
    def head(self) -> Ints:
        """(E,) node where each link ends."""

    @property
    def parallel(self) -> Ints:
        """(E,) 1 for the first link between its ends, 2 for the second, and so on."""

    @property
    def capacity_mbps(self) -> Floats:
        """(E,) capacity of each link, Mbit/s."""

    @property
    def weight(self) -> Floats:
        """(E,) routing metric of each link."""

    @property
    def link_weights(self) -> sp.csr_array:
        """(N, N) weight from tail to head; of parallel links the smallest."""

    @property
    def link_labels(self) -> list[str]:
        """(E,) label of each link."""

    @property
    def source(self) -> Ints:
        """(K,) node where each demand starts."""

    @property
    def target(self) -> Ints:
        """(K,) node where each demand ends."""

    @property
    def rate_mbps(self) -> Floats:
        """(K,) rate of each demand, Mbit/s."""

    @property
    def demand_labels(self) -> list[str]:
        """(K,) label of each demand."""

    @property
    def has_classes(self) -> bool:
        """Whether demands have classes."""

    @property
    def targets(self) -> Ints:
        """(D,) nodes where demands with a positive rate end, ascending."""

    @property
    def target_row(self) -> Ints:
        """(K,) row of each demand's target in `targets`."""

    @property
    def distance(self) -> Floats:
        """(D, N) weight of the shortest path from each node to each of `targets`; inf without one."""

    @property
    def max_latency_ms(self) -> Floats:
        """(K,) largest delay of each demand's routes, ms; inf for any."""

    @property
    def parsed_rules(self) -> Sequence[RouteRule]:
        """Rules of routes."""

    @property
    def parsed_tunnels(self) -> Tunnels | None:
        """Configured tunnels; None for none."""

    def find_nodes(self, names: pd.Series) -> Ints:
        """Return the node of each name; -1 where there is none."""

    def find_links(self, tail: Ints, head: Ints, nth: Ints) -> Ints:
        """Return the nth of the parallel links from tail to head; -1 where there is none."""

    def find_demands(self, table: pd.DataFrame) -> Ints:
        """Return the demand of each row of a table by its `source` and `target`; -1 for none."""
