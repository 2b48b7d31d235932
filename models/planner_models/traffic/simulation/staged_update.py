"""A plan that nodes install one after another: until the last has it, packets meet old and new tables.

Old and new tables together may lead packets in a circle, or past nodes that have no table, where they take
shortest paths. A node that has no plan yet, at the start, takes shortest paths too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools, Ints
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.planned_routes import PlannedRoutes

STEPS: Final = 20
"""Groups of nodes that install a plan together."""


@dataclass(frozen=True, kw_only=True)
class UpdateTiming:
    """Time that the nodes take to install a plan."""

    update_s: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="packets: time over which nodes install the tables of a new plan in random order, s; "
            "0: all at once",
        ),
    ] = 0.0


class InstalledTables:
    """The shares that the tables of nodes have, of each demand on each link, as nodes install plans."""

    def __init__(self, problem: Traffic, seed: int) -> None:
        """Begin without tables.

        seed  of the order of nodes
        """
        self._problem = problem
        self._random = np.random.default_rng([seed, 3])
        self.share = sp.csr_array((len(problem.demands), len(problem.links)))

    def draw_groups(self) -> list[Ints]:
        """Return the nodes in random order, in groups that install a plan one after another."""
        nodes = self._random.permutation(len(self._problem.nodes))
        return [group for group in np.array_split(nodes, STEPS) if len(group)]

    def install(self, routes: PlannedRoutes, nodes: Ints) -> None:
        """Give some nodes the tables of a plan; the others keep theirs."""
        is_new = np.isin(self._problem.tail, nodes)
        self.share = sp.csr_array(_select(share_by_demand(routes), is_new) + _select(self.share, ~is_new))

    def drop_links(self, down: Bools) -> None:
        """Remove links that have failed, (E,), from all tables; nodes use the others."""
        self.share = _select(self.share, ~down)


def share_by_demand(routes: PlannedRoutes) -> sp.csr_array:
    """Return the shares of each demand on each link by a plan with split tables, (K, E)."""
    count = len(routes.row)
    rows = np.flatnonzero(routes.row >= 0)
    select = sp.csr_array(
        (np.ones(len(rows)), (rows, routes.row[rows])), shape=(count, routes.share.shape[0])
    )
    return sp.csr_array(select @ routes.share)


def _select(share: sp.csr_array, links: Bools) -> sp.csr_array:
    """Return the shares on some links, (E,), without the others."""
    selected = sp.csr_array(share @ sp.diags_array(links.astype(float)))
    selected.eliminate_zeros()
    return selected
