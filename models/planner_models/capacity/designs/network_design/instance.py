"""The data of least-cost network design and its answer, as plain arrays.

    minimize    module costs + setup costs of the links that buy + routing costs of the traffic
    such that   in the normal state and in each failure state all demands are routed at once, along any
                routes, within installed capacity plus the modules bought

With a budget, the total cost is limited instead and the delivered traffic is maximized: a demand delivers
the same rate in every state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.contract.proof import Status

Direction = Literal["undirected", "bidirected", "directed"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tunnels:
    """Tunnels, T of them, of demands that may take nothing else.

    demand  (T,) row of the demand of each
    arcs    (T, A) 1 where a tunnel takes an arc: a link from tail to head, or, where links have both
            directions, E + a link from head to tail
    """

    demand: NDArray[np.int64]
    arcs: sp.csr_array


@dataclass(frozen=True, kw_only=True, eq=False)
class Instance:
    """One problem of network design.

    nodes          number of nodes
    tail, head     (E,) ends of each link, rows of nodes
    direction      "undirected": the traffic of both directions shares the capacity of a link;
                   "bidirected": each direction has the capacity; "directed": traffic goes from tail to
                   head only
    installed      (E,) capacity that is there
    setup_cost     (E,) cost of buying any module for a link, paid once
    routing_cost   (E,) cost per unit of traffic on a link, in the normal state
    module_edge    (M,) link that a module is for
    module_size    (M,) capacity of one module, greater than 0
    module_cost    (M,) cost of one module, at least 0
    module_limit   (M,) most modules of this kind, inf for any number
    explicit       whether a link buys at most one module (SNDlib's "E"); else any number ("M")
    source, target (D,) ends of each demand, rows of nodes; where links are undirected their order has no
                   effect
    rate           (D,) traffic of each demand, at least 0
    failures       (S, E) True where a link is down; the normal state is no row
    required       (S, D) share of each demand that must be routed, 0 for one that ends at a failed node; None
                   for 1 everywhere; in the normal state it is 1
    tunnels        the only paths of some demands; None where all may take any routes
    """

    nodes: int
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    direction: Direction
    installed: NDArray[np.float64]
    setup_cost: NDArray[np.float64]
    routing_cost: NDArray[np.float64]
    module_edge: NDArray[np.int64]
    module_size: NDArray[np.float64]
    module_cost: NDArray[np.float64]
    module_limit: NDArray[np.float64]
    explicit: bool
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    rate: NDArray[np.float64]
    failures: NDArray[np.bool_]
    required: NDArray[np.float64] | None = field(default=None)
    tunnels: Tunnels | None = field(default=None)

    def __post_init__(self) -> None:
        edges, modules, demands = len(self.tail), len(self.module_edge), len(self.rate)
        states = len(self.failures)
        expected = {
            "head": (edges,),
            "installed": (edges,),
            "setup_cost": (edges,),
            "routing_cost": (edges,),
            "module_size": (modules,),
            "module_cost": (modules,),
            "module_limit": (modules,),
            "source": (demands,),
            "target": (demands,),
            "failures": (states, edges),
        }
        if self.required is not None:
            expected["required"] = (states, demands)
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, must be {shape}")

    @property
    def edges(self) -> int:
        """Number of links."""
        return len(self.tail)

    @property
    def modules(self) -> int:
        """Number of kinds of modules, over all links."""
        return len(self.module_edge)

    def capacity(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the capacity of each link with `counts` (M,) modules bought, shape (E,)."""
        bought = np.bincount(self.module_edge, weights=counts * self.module_size, minlength=self.edges)
        capacity: NDArray[np.float64] = self.installed + bought
        return capacity

    def purchase_cost(self, counts: NDArray[np.float64]) -> float:
        """Return the module and setup costs of `counts` (M,) modules; routing costs are not in it."""
        bought = np.bincount(self.module_edge, weights=counts, minlength=self.edges) > 0
        return float(counts @ self.module_cost + self.setup_cost[bought].sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """Modules to buy, their cost, and their proof. None for unknown.

    status     OPTIMAL (the gap is at most the one requested), FEASIBLE, INFEASIBLE or UNDECIDED
    counts     (M,) modules bought of each kind, whole numbers; None without a plan
    cost       modules, setup and routing of the plan
    objective  what is optimized: the cost, or with a budget the delivered traffic
    bound      no plan has a smaller cost; with a budget, none delivers more
    delivered  (D,) delivered traffic of each demand; the rates where there is no budget
    flows      (D, 2 E) traffic of each demand on each link in the normal state: first along the links
               (from tail to head), then against them
    reason     a shortage that proves that no plan exists; None elsewhere, and where no cut proves it
    """

    status: Status
    counts: NDArray[np.float64] | None = None
    cost: float | None = None
    objective: float | None = None
    bound: float | None = None
    delivered: NDArray[np.float64] | None = None
    flows: sp.csr_array | None = None
    reason: Shortage | None = None


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A cut with more demand than capacity even with all modules.

    nodes     rows of the nodes on one side
    failure   row of `failures`, None for the normal state
    capacity  most capacity across it
    demand    traffic that must cross it
    """

    nodes: tuple[int, ...]
    failure: int | None
    capacity: float
    demand: float
