"""Link formulation of multi-commodity flow, one commodity per target, as sparse arrays.

The flows of all demands to a target are one commodity: sum over sources of the flows of
equation (1) of Sen et al. 2013, as in its section 4.2. The optimum is the same, since traffic to one
target is interchangeable, and the program smaller by a factor of |sources|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.tables import file_name
from planner.errors import InputError
from planner_models.flows.problem import FlowProblem

Objective = Literal["delivered", "concurrent", "utilization", "total", "cost"]

METRIC_OF: Final[dict[Objective, str]] = {
    "delivered": "delivered_mbps",
    "concurrent": "concurrent_flow",
    "utilization": "max_utilization",
    "total": "delivered_mbps",
    "cost": "cost",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkFlowModel:
    """The program, and the commodity and link of each of its flow variables.

    row, link  (n,) row of `problem.targets` and link of variable j < n
    """

    program: LinearProgram
    row: Ints
    link: Ints
    shape: tuple[int, int]

    def flow_mbps(self, x: Floats) -> sp.coo_array:
        """Return the flow to each target on each link in a solution, shape (D, E), Mbit/s."""
        return sp.coo_array((x[: len(self.link)], (self.row, self.link)), shape=self.shape)


def build(
    problem: FlowProblem,
    objective: Objective,
    *,
    least_mbps: float | None = None,
    labels: Sequence[str] | None = None,
) -> LinkFlowModel:
    """Return the linear program of `objective` over all routes, see `flow_program`.

    labels  (D,) name of each row of `problem.targets`; default: that of the node
    """
    targets, nodes, links = len(problem.targets), len(problem.nodes), len(problem.links)

    def commodities() -> Sequence[str]:
        return labels or [str(name) for name in problem.nodes["node"].to_numpy()[problem.targets]]

    # no flow leaves its target, so links out of a commodity's target have no variable
    row, link = np.nonzero(problem.tail[None, :] != problem.targets[:, None])
    count = len(link)
    flow = np.arange(count)

    # a row for each (target, node but the target): what leaves less what enters
    def balance_row(commodity: Ints, node: Ints) -> Ints:
        return commodity * (nodes - 1) + node - (node > problem.targets[commodity])

    inner = problem.head[link] != problem.targets[row]
    rows = np.r_[balance_row(row, problem.tail[link]), balance_row(row[inner], problem.head[link][inner])]
    signs = np.r_[np.ones(count), -np.ones(int(inner.sum()))]
    balances = targets * (nodes - 1)
    conserve = sp.coo_array((signs, (rows, np.r_[flow, flow[inner]])), shape=(balances, count))
    demands = np.flatnonzero(problem.rate_mbps > 0)
    commodity = problem.target_row[demands]
    source_row = balance_row(commodity, problem.source[demands])
    flows = FlowColumns(
        send=conserve,
        of_demand=sp.coo_array(
            (np.ones(len(demands)), (source_row, np.arange(len(demands)))), shape=(balances, len(demands))
        ),
        demands=demands,
        load=sp.coo_array((np.ones(count), (link, flow)), shape=(links, count)),
        columns=Columns(
            name="flow", count=count, labels=lambda: _flow_labels(problem, commodities(), row, link)
        ),
        rows=("conserve", lambda: _balance_labels(problem, commodities())),
    )
    price = link_cost(problem)[link] if objective == "cost" else None
    program = flow_program(problem, objective, flows, price=price, least_mbps=least_mbps)
    return LinkFlowModel(program=program, row=row, link=link, shape=(targets, links))


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowColumns:
    """The flows of a linear program: send @ x = of_demand @ rates of `demands`; load @ x loads the links.

    rows  name and labels of the rows of `send`
    """

    columns: Columns
    send: sp.coo_array
    of_demand: sp.coo_array
    demands: Ints
    load: sp.coo_array
    rows: tuple[str, Callable[[], Sequence[str]]]


def flow_program(
    problem: FlowProblem,
    objective: Objective,
    flow: FlowColumns,
    *,
    price: Floats | None = None,
    least_mbps: float | None = None,
    suffix: str = "",
) -> LinearProgram:
    """Return the linear program of `objective` over flows or paths x.

    delivered    max traffic, then min U: sum of served rates - c U / 2 with the smallest capacity c. One
                 Mbit/s less of a demand lowers U by at most 1 / c, so that this never pays
    concurrent   max lambda, lambda times every demand fits the capacities
    utilization  min U, every demand is served and no link carries more than U times its capacity
    total        max traffic, of each demand at most its rate, within the capacities
    cost         min price of the traffic on all links, every demand is served within the capacities; with
                 `least_mbps` that much traffic of all demands together

    flow  what the variables x send; behind x come
    lambda or U (concurrent, utilization), served rates (total, cost with `least_mbps`), or both (delivered)
    """
    demands, columns, rows, of_demand = flow.demands, flow.columns, flow.rows, flow.of_demand
    rate, capacity = problem.rate_mbps[demands], problem.capacity_mbps
    supply = np.atleast_1d(of_demand @ rate)
    is_most = objective in ("delivered", "total")
    has_served = is_most or least_mbps is not None
    factor = {"concurrent": "lambda", "utilization": "utilization", "delivered": "utilization"}.get(objective)

    m = ProgramBuilder(
        sense="maximize" if is_most or factor == "lambda" else "minimize", name=f"traffic {objective}{suffix}"
    )
    x = m.variables(columns.name, columns.count, cost=0.0 if price is None else price, labels=columns.labels)
    balance, net, limit = flow.send @ x, supply, capacity
    used = flow.load @ x
    if has_served:
        served = m.variables(
            "served",
            len(demands),
            upper=rate,
            cost=float(is_most),
            labels=lambda: [problem.demand_labels[k] for k in demands],
        )
        balance, net = balance - of_demand @ served, np.zeros_like(supply)
    if factor is not None:
        cost, upper = (-float(capacity.min()) / 2, 1.0) if objective == "delivered" else (1.0, np.inf)
        scale = m.variables(factor, 1, upper=upper, cost=cost)
        if factor == "lambda":
            balance, net = balance - supply[:, None] @ scale, np.zeros_like(supply)
        else:
            used, limit = used - capacity[:, None] @ scale, np.zeros_like(capacity)
    m.constrain(rows[0], balance, equal=net, labels=rows[1])
    m.constrain("capacity", used, upper=limit, labels=lambda: problem.link_labels)
    if least_mbps is not None:
        m.constrain("total", served.sum(), lower=least_mbps)
    return m.build()


def link_cost(problem: FlowProblem) -> Floats:
    """Return the cost per Mbit/s of each link, shape (E,); InputError where links have none."""
    if "cost" not in problem.links:
        raise InputError(
            f"{file_name(problem.links, 'links')}: column 'cost' is missing; objective 'cost' needs it"
        )
    return problem.links["cost"].to_numpy(float)


def _flow_labels(problem: FlowProblem, commodities: Sequence[str], row: Ints, link: Ints) -> Sequence[str]:
    return [f"{commodities[d]}: {problem.link_labels[e]}" for d, e in zip(row, link, strict=True)]


def _balance_labels(problem: FlowProblem, commodities: Sequence[str]) -> Sequence[str]:
    names = problem.nodes["node"].tolist()
    return [
        f"{label}: {node}"
        for label, target in zip(commodities, problem.targets, strict=True)
        for row, node in enumerate(names)
        if row != target
    ]
