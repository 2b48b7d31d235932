"""Link formulation of multi-commodity flow, one commodity per target, as sparse arrays.

The flows of all demands to a target are one commodity: sum over sources of the flows of
equation (1) of Sen et al. 2013, as in its section 4.2. The optimum is the same, since traffic to one
target is interchangeable, and the program smaller by a factor of |sources|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.contract.tables import file_name
from planner.errors import InputError
from planner_models.traffic.problem.problem import Traffic, sum_by_index

Objective = Literal["concurrent", "utilization", "total", "cost"]

METRIC_OF: Final[dict[Objective, str]] = {
    "concurrent": "concurrent_flow",
    "utilization": "max_utilization",
    "total": "total_flow_mbps",
    "cost": "cost",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkFlowModel:
    """The program, and the commodity and link of each of its flow variables.

    row, link  (n,) row of `problem.targets` and link of variable j < n; behind the flows come
               lambda or U (objectives concurrent and utilization), or K served rates (total)
    """

    program: LinearProgram
    row: Ints
    link: Ints
    shape: tuple[int, int]

    def flow_mbps(self, x: Floats) -> sp.coo_array:
        """Return the flow to each target on each link in a solution, shape (D, E), Mbit/s."""
        return sp.coo_array((x[: len(self.link)], (self.row, self.link)), shape=self.shape)


def build(problem: Traffic, objective: Objective) -> LinkFlowModel:
    """Return the linear program of `objective` over all routes.

    concurrent   max lambda, lambda times every demand fits the capacities
    utilization  min U, every demand is served and no link carries more than U times its capacity
    total        max traffic, of each demand at most its rate, within the capacities
    cost         min price of the traffic on all links, every demand is served within the capacities
    """
    targets, nodes, links = len(problem.targets), len(problem.nodes), len(problem.links)
    # no flow leaves its target, so links out of a commodity's target have no variable
    row, link = np.nonzero(problem.tail[None, :] != problem.targets[:, None])
    count = len(link)
    flow = np.arange(count)
    target = problem.targets[row]

    # a row for each (target, node but the target): what leaves less what enters
    def balance_row(commodity: Ints, node: Ints) -> Ints:
        return commodity * (nodes - 1) + node - (node > problem.targets[commodity])

    inner = problem.head[link] != target
    rows = np.concatenate(
        [balance_row(row, problem.tail[link]), balance_row(row[inner], problem.head[link][inner])]
    )
    signs = np.concatenate([np.ones(count), -np.ones(int(inner.sum()))])
    balances = targets * (nodes - 1)
    conserve = sp.coo_array((signs, (rows, np.concatenate([flow, flow[inner]]))), shape=(balances, count))
    load = sp.coo_array((np.ones(count), (link, flow)), shape=(links, count))

    wanted = np.flatnonzero(problem.rate_mbps > 0)
    commodity = np.searchsorted(problem.targets, problem.target[wanted])
    source_row = balance_row(commodity, problem.source[wanted])
    rate = problem.rate_mbps[wanted]
    demand = sum_by_index(source_row, rate, balances)
    capacity = problem.capacity_mbps

    flow_columns = Columns(name="flow", count=count, labels=lambda: _flow_labels(problem, row, link))

    def node_labels() -> Sequence[str]:
        return _balance_labels(problem)

    def link_labels() -> Sequence[str]:
        return problem.link_labels

    match objective:
        case "concurrent":
            program = LinearProgram.build(
                sense="max",
                cost=np.r_[np.zeros(count), 1.0],
                rows=[
                    Rows(
                        "conserve", _hstack(conserve, -demand[:, None]), lower=0, upper=0, labels=node_labels
                    ),
                    Rows("capacity", _pad_columns(load, 1), upper=capacity, labels=link_labels),
                ],
                columns=[flow_columns, Columns(name="lambda", count=1)],
                name="traffic concurrent",
            )
        case "utilization":
            program = LinearProgram.build(
                cost=np.r_[np.zeros(count), 1.0],
                rows=[
                    Rows(
                        "conserve", _pad_columns(conserve, 1), lower=demand, upper=demand, labels=node_labels
                    ),
                    Rows("capacity", _hstack(load, -capacity[:, None]), upper=0, labels=link_labels),
                ],
                columns=[flow_columns, Columns(name="utilization", count=1)],
                name="traffic utilization",
            )
        case "total":
            served = sp.coo_array(
                (-np.ones(len(wanted)), (source_row, np.arange(len(wanted)))), shape=(balances, len(wanted))
            )
            program = LinearProgram.build(
                sense="max",
                cost=np.r_[np.zeros(count), np.ones(len(wanted))],
                rows=[
                    Rows("conserve", _hstack(conserve, served), lower=0, upper=0, labels=node_labels),
                    Rows("capacity", _pad_columns(load, len(wanted)), upper=capacity, labels=link_labels),
                ],
                columns=[
                    flow_columns,
                    Columns(
                        name="served",
                        count=len(wanted),
                        labels=lambda: [problem.demand_labels[k] for k in wanted],
                    ),
                ],
                upper=np.r_[np.full(count, np.inf), rate],
                name="traffic total",
            )
        case "cost":
            program = LinearProgram.build(
                cost=link_cost(problem)[link],
                rows=[
                    Rows("conserve", conserve, lower=demand, upper=demand, labels=node_labels),
                    Rows("capacity", load, upper=capacity, labels=link_labels),
                ],
                columns=[flow_columns],
                name="traffic cost",
            )
    return LinkFlowModel(program=program, row=row, link=link, shape=(targets, links))


def link_cost(problem: Traffic) -> Floats:
    """Return the cost per Mbit/s of each link, shape (E,); InputError where links have none."""
    if "cost" not in problem.links:
        raise InputError(
            f"{file_name(problem.links, 'links')}: column 'cost' is missing; objective 'cost' needs it"
        )
    return problem.links["cost"].to_numpy(float)


def _hstack(left: sp.coo_array, right: sp.coo_array | Floats) -> sp.csr_array:
    return sp.csr_array(sp.hstack([left, sp.coo_array(right)], format="csr"))


def _pad_columns(matrix: sp.coo_array, columns: int) -> sp.csr_array:
    """Return the matrix with that many zero columns appended."""
    wide = sp.csr_array(matrix)
    wide.resize((matrix.shape[0], matrix.shape[1] + columns))
    return wide


def _flow_labels(problem: Traffic, row: Ints, link: Ints) -> Sequence[str]:
    names = problem.nodes["node"].to_numpy()[problem.targets]
    return [f"{names[d]}: {problem.link_labels[e]}" for d, e in zip(row, link, strict=True)]


def _balance_labels(problem: Traffic) -> Sequence[str]:
    names = problem.nodes["node"].tolist()
    return [f"{names[t]}: {node}" for t in problem.targets for v, node in enumerate(names) if v != t]
