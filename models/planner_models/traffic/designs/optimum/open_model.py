"""The linear program of the design `optimum` with names, for constraints and objectives of the user.

Its first objective is that of the design. Where it is "delivered", the first objective is the delivered
traffic alone, and the largest link utilization the second one, since constraints of the user may make the
small weight of `flow_program` wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.formatting import counted
from planner.options import Service
from planner_models.flows import link_flow_program, path_flow_program, split_ratios
from planner_models.flows.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.problem import FlowProblem
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic.designs.optimum.optimum import OBJECTIVE_TEXTS, require_all
from planner_models.traffic.designs.route_choice import describe_paths, find_candidates, require_paths
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import SolvedFlows, fit_capacities, flows_over_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

ALL: Final = "all"
"""Value of `separate` for a commodity for each demand."""


class Commodities:
    """A problem whose flows are kept apart by commodity: all demands to a target, or one demand.

    Solvers read targets from it, of which there are as many as commodities; all else is that of the problem.

    targets     (C,) target of each commodity
    target_row  (K,) commodity of each demand
    labels      (C,) target of each commodity, or the demand that it is
    """

    def __init__(self, problem: Traffic, separate: Ints) -> None:
        """Keep the demands `separate`, by row, apart; others to one target are one commodity."""
        demands = np.flatnonzero(problem.rate_mbps > 0)
        apart = demands[np.isin(demands, separate)]
        common = np.setdiff1d(demands, apart)
        nodes = np.unique(problem.target[common])
        self.problem = problem
        self.targets = np.concatenate([nodes, problem.target[apart]]).astype(np.int64)
        self.target_row = np.zeros(len(problem.demands), dtype=np.int64)
        self.target_row[common] = np.searchsorted(nodes, problem.target[common])
        self.target_row[apart] = len(nodes) + np.arange(len(apart))
        self.distance = problem.distance[np.searchsorted(problem.targets, self.targets)]
        names = problem.nodes["node"].to_numpy(object)
        self.labels = [*names[nodes], *(problem.demand_labels[demand] for demand in apart)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)


def _require_modelled(
    problem: Traffic,
    paths: int | Literal["any", "tunnels"],
    limits: RouteLimits | None,
    objective: Objective,
    service: Service,
) -> None:
    """Raise InputError where there is no linear program of a problem."""
    if paths == "any" and limits is not None:
        raise InputError(
            "paths is 'any': the linear program over links has no latency limits and rules; give a number of "
            "paths, or 'tunnels'"
        )
    if not (problem.routable.rate_mbps > 0).any():
        raise InputError("demands: none has a rate and a path, so that there is nothing to model")
    if service == "all" and problem.unreachable.any():
        raise InputError(_lack(problem, problem.unreachable))
    if objective == "cost":
        link_cost(problem)  # raises where links have none


def open_model(
    problem: Traffic,
    *,
    objective: Objective = "delivered",
    paths: int | Literal["any", "tunnels"] = "any",
    path_choice: PathChoice = "shortest",
    max_hops: int | None = None,
    separate: str | Sequence[str] = (),
    service: Service = "best",
    previous: Routing | None = None,
) -> OpenModel[Routing]:
    """Return the linear program of `route` with the same parameters, open to changes.

    Variables, with the columns of their members:

    flow         over all routes: Mbit/s of a commodity on a link (commodity, target, link, tail, head)
    path         with a number of paths, or tunnels: Mbit/s on a path (demand, source, target, path, hops)
    served       Mbit/s of a demand that is served (demand, source, target, rate_mbps)
    utilization  largest link utilization ("delivered"), lambda: share of all demands ("concurrent")

    Constraints: conserve or serve, and capacity. The matrix `uses` (paths, links) says what share of a
    path's traffic takes a link.

    separate  demands with flows of their own in `flow`, by name, by one of their ends or by class; "all" for
              each. The flows of the others to one target are one commodity, so that the program is small
    previous  plan before, for the aim `fewest_moves`
    raises    InputError for `separate` with paths, whose traffic is by demand, for an unknown name, where no
              demand has a path, and with service "all" where one has none
    """
    require_paths(paths, max_hops)
    limits = RouteLimits.of(problem)
    _require_modelled(problem, paths, limits, objective, service)
    routable = problem.routable
    if paths == "any":
        model = _model_over_links(problem, routable, objective, find_separate(problem, separate), previous)
    elif len(separate):
        raise InputError("separate: with paths, the traffic of each demand is separate already; leave it out")
    else:
        candidates = find_candidates(routable, paths, path_choice, max_hops, limits)
        if service == "all" and (lacking := candidates.without_path(routable)).any():
            raise InputError(_lack(problem, lacking))
        scope = describe_paths(paths, path_choice, max_hops, limits)
        model = _model_over_paths(problem, routable, objective, candidates, scope, previous)
    if service == "all":
        model = replace(model, program=require_all(model.program))
    return _describe_objective(model, objective)


def _describe_objective(model: OpenModel[Routing], objective: Objective) -> OpenModel[Routing]:
    """Return the model with its objective as text; delivered traffic comes before utilization."""
    program = model.program
    if objective != "delivered":
        unit = "Mbit/s" if objective == "total" else ""
        return replace(
            model,
            program=program.describe(OBJECTIVE_TEXTS[objective], metric=METRIC_OF[objective], unit=unit),
            is_of_plan=objective != "concurrent",
        )
    cost = program.cost.copy()
    cost[-1] = 0.0  # of the utilization
    program = replace(program, cost=cost)
    return replace(
        model,
        program=program.describe(OBJECTIVE_TEXTS["total"], metric="delivered_mbps", unit="Mbit/s"),
        then={"utilization": 1.0},
    )


def _lack(problem: Traffic, lacking: Bools) -> str:
    """Return the error where all demands must be served, and some, (K,), cannot."""
    first = problem.demand_labels[int(np.flatnonzero(lacking)[0])]
    return (
        f"service is 'all', but {counted(int(lacking.sum()), 'demands', 'have')} no path, such as {first}; "
        "service 'best' sheds what cannot be served"
    )


def find_separate(problem: Traffic, separate: str | Sequence[str]) -> Ints:
    """Return the rows of the demands that are named: by their labels, an end, or a class.

    separate  names, or "all" for every demand
    raises    InputError for a name that no demand has
    """
    if separate == ALL:
        return np.arange(len(problem.demands))
    names = [separate] if isinstance(separate, str) else list(separate)
    columns = [
        problem.demands[name].astype(str) for name in ("source", "target", "class") if name in problem.demands
    ]
    columns.insert(0, pd.Series(problem.demand_labels))
    selected = np.zeros(len(problem.demands), dtype=bool)
    for name in names:
        matches = np.logical_or.reduce([column.to_numpy(object) == str(name) for column in columns])
        if not matches.any():
            known = dict.fromkeys(value for column in columns for value in column)
            raise InputError(
                f"separate: '{name}' is no demand, no end of one and no class{did_you_mean(str(name), known)}"
            )
        selected |= matches
    return np.flatnonzero(selected)


def _model_over_links(
    problem: Traffic, routable: Traffic, objective: Objective, separate: Ints, previous: Routing | None
) -> OpenModel[Routing]:
    view = Commodities(routable, separate)
    flows = cast(FlowProblem, view)
    model = link_flow_program.build(flows, objective, labels=view.labels)
    row, link = model.row, model.link

    def read(x: Floats) -> Routing:
        served = _served(routable, model.program, objective, x)
        ratios = split_ratios.ratios_of_solution(flows, model.flow_mbps(x))
        return fit(
            problem,
            SolvedFlows(
                served,
                lambda share: routing.routing_by_demand(
                    problem, split_ratios.apply_ratios(flows, ratios, served * share)
                ),
            ),
            objective,
        )

    def list_flows() -> pd.DataFrame:
        names = problem.nodes["node"].to_numpy(object)
        return pd.DataFrame(
            {
                "commodity": np.array(view.labels, dtype=object)[row],
                "target": names[view.targets[row]],
                **_link_columns(problem, link),
            }
        )

    members = {"flow": list_flows, **_other_members(problem, routable)}
    count = len(link)
    uses = Uses(
        "flow",
        sp.csr_array((np.ones(count), (link, np.arange(count))), shape=(len(problem.links), count)),
        row,
        view.target_row,
    )
    return OpenModel(
        program=model.program,
        read=read,
        members=members,
        guarantees=_guarantees(objective),
        goals=make_goals(problem, uses, previous),
    )


def _model_over_paths(
    problem: Traffic,
    routable: Traffic,
    objective: Objective,
    paths: CandidatePaths,
    scope: str,
    previous: Routing | None,
) -> OpenModel[Routing]:
    program = path_flow_program.build(routable, objective, paths)
    is_partial = objective in ("delivered", "total")

    def read(x: Floats) -> Routing:
        flows = flows_over_paths(problem, paths, x[: len(paths.demand)], is_partial=is_partial)
        return fit(problem, flows, objective)

    def list_paths() -> pd.DataFrame:
        demand = paths.demand
        return pd.DataFrame(
            {
                **_demand_columns(problem, demand),
                "path": path_flow_program.path_labels(routable, paths),
                "hops": np.diff(paths.found.start),
            }
        )

    uses = Uses("path", sp.csr_array(paths.uses.T), paths.demand, np.arange(len(problem.demands)))
    members = {"path": list_paths, **_other_members(problem, routable, np.unique(paths.demand))}
    return OpenModel(
        program=program,
        read=read,
        members=members,
        matrices={"uses": paths.uses},
        scope=scope,
        guarantees=_guarantees(objective),
        goals=make_goals(problem, uses, previous),
    )


def _guarantees(objective: Objective) -> frozenset[str]:
    return frozenset({"demand"} if objective == "utilization" else {"capacity", "demand"})


def fit(problem: Traffic, flows: SolvedFlows, objective: Objective) -> Routing:
    """Return the plan of a solution, within the capacities of its links.

    The largest utilization is that of all demands, also above 1.
    """
    plan = flows.make_plan(1.0)
    if objective == "utilization":
        return plan
    return fit_capacities(problem, flows, plan)[0]


def _served(problem: Traffic, program: LinearProgram, objective: Objective, x: Floats) -> Floats:
    """Return the rate of each demand that a solution serves, (K,) Mbit/s."""
    if objective == "concurrent":
        return problem.rate_mbps * min(float(program.values("lambda", x)[0]), 1.0)
    served = problem.rate_mbps.copy()
    if objective in ("delivered", "total"):
        served[problem.rate_mbps > 0] = program.values("served", x)
    return np.clip(served, 0.0, problem.rate_mbps)


def _demand_columns(problem: Traffic, rows: Ints) -> dict[str, Any]:
    labels = np.array(problem.demand_labels, dtype=object)
    columns = {"demand": labels[rows]}
    for name in ("source", "target", "class"):
        if name in problem.demands:
            columns[name] = problem.demands[name].to_numpy(object)[rows]
    return columns


def _link_columns(problem: Traffic, rows: Ints) -> dict[str, Any]:
    """Return columns that know all links and nodes, also those without a variable."""
    nodes = pd.Index(problem.nodes["node"].astype(str))
    return {
        "link": pd.Categorical.from_codes(rows, pd.Index(problem.link_labels)),
        "tail": pd.Categorical.from_codes(problem.tail[rows], nodes),
        "head": pd.Categorical.from_codes(problem.head[rows], nodes),
    }


def _other_members(
    problem: Traffic, routable: Traffic, rows: Ints | None = None
) -> dict[str, Callable[[], pd.DataFrame]]:
    demands = np.flatnonzero(routable.rate_mbps > 0) if rows is None else rows
    return {
        "served": lambda: pd.DataFrame(
            {**_demand_columns(problem, demands), "rate_mbps": problem.rate_mbps[demands]}
        )
    }


# --- aims of plans near the optimum -----------------------------------------------------------


class Uses(NamedTuple):
    """Links that the traffic of each variable takes.

    block      name of the variables: "flow" or "path"
    links      (E, n) share of a variable's traffic on each link
    commodity  (n,) commodity of each variable
    of_demand  (K,) commodity of each demand
    """

    block: str
    links: sp.csr_array
    commodity: Ints
    of_demand: Ints

    def load(self, m: ProgramBuilder) -> Expression:
        """Return the traffic on each link, (E,)."""
        load: Expression = self.links @ m[self.block]
        return load


def make_goals(problem: Traffic, uses: Uses, previous: Routing | None) -> Mapping[str, Goal]:
    """Return the aims by which plans near the optimum may differ.

    previous  plan before, from which few moves may be asked for; None for none
    """

    def used_links(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        used = m.variables(
            "used", len(problem.links), upper=1.0, integer=True, labels=lambda: problem.link_labels
        )
        largest = np.minimum(problem.capacity_mbps, problem.rate_mbps.sum())
        m.constrain("load of used links", uses.load(m) - largest * used, upper=0.0)
        return used.sum()

    def through(m: ProgramBuilder, node: str, _optimum: Floats) -> Expression:
        names = problem.nodes["node"].astype(str).tolist()
        if node not in names:
            raise InputError(f"least_through: '{node}' is no node{did_you_mean(node, names)}")
        return uses.load(m)[np.flatnonzero(problem.head == names.index(node))].sum()

    def traffic(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return uses.load(m).sum()

    def busiest(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        largest = m.variables("busiest", ())
        m.constrain("load of the busiest", uses.load(m) - problem.capacity_mbps * largest, upper=0.0)
        return largest.sum()

    goals = {
        "fewest_links": Goal(about="links that carry traffic", build=used_links),
        "least_traffic": Goal(about="traffic on all links together", unit="Mbit/s", build=traffic),
        "least_busiest": Goal(about="largest link utilization", build=busiest),
        "least_through": Goal(about="traffic that enters a node", unit="Mbit/s", build=through, value="node"),
    }
    if previous is not None:
        if "source" not in previous.flows:
            raise InputError("previous: the plan lists flows by target, must list those of each demand")
        before = routing.flow_by_demand(problem, previous)
        goals["fewest_moves"] = Goal(
            about="traffic taken off links of the plan before",
            unit="Mbit/s",
            build=lambda m, _value, _optimum: _taken_off(m, uses, before),
        )
    return goals


def _taken_off(m: ProgramBuilder, uses: Uses, before: sp.sparray) -> Expression:
    """Return the traffic that leaves the links that it is on in the plan before, (K, E) Mbit/s."""
    flow, width = sp.coo_array(before), uses.links.shape[0]
    key, row = np.unique(uses.of_demand[flow.row].astype(np.int64) * width + flow.col, return_inverse=True)
    rate = np.bincount(row, flow.data, minlength=len(key))
    share = uses.links.tocoo()
    of_variable = uses.commodity[share.col].astype(np.int64) * width + share.row
    position = np.clip(np.searchsorted(key, of_variable), 0, max(len(key) - 1, 0))
    is_there = (key[position] == of_variable) if len(key) else np.zeros(len(of_variable), dtype=bool)
    present = sp.csr_array(
        (share.data[is_there], (position[is_there], share.col[is_there])),
        shape=(len(key), uses.links.shape[1]),
    )
    taken = m.variables("taken", len(key), upper=rate)
    m.constrain("taken off", present @ m[uses.block] + taken, lower=rate)
    return taken.sum()
