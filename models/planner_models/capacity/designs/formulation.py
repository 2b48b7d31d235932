"""The formal model of system `capacity` in Pyomo: capacitated network design with failure states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.module_limits import largest_counts
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.routing import Arcs

if TYPE_CHECKING:
    import pyomo.environ as pyo

DemandsOf = Mapping[tuple[int, int], list[int]]
"""Demands without tunnels by target and source."""


def formulation(problem: CapacityPlanning) -> pyo.ConcreteModel:
    """Return the network design problem as a model, with the flows of every year and state.

    minimize    sum_t p_t (sum_m c_m n_mt + sum_l s_l z_lt + sum_l r_l sum_k f^k_lt0) + installed cost
    subject to  flow conservation at every node for every target k, in every year t and state s
                sum_k f^k_lts at most the utilization limit of s times the capacity of l in t, 0 where down:
                C_l + sum_{t' <= t} a_m n_mt', of a leased module a_m n_mt
                n_mt at most the limit over all years, and 0 before the setup z_l of the link is paid
                no more unserved in a state than whatever is bought must be
                demands with tunnels or a latency limit: the flow x_its of each of their paths i counts on the
                links of i, and sum_i x_its is what is not shed of them; paths beyond the limit have none

    With a budget the model minimizes the worst unserved demand w instead, and its Expression
    `proof_objective` is the demand that is delivered; purchases cost at most the budget.
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("capacity planning")
    arcs, demands_of = Arcs.of(problem), _free_demands(problem)
    _add_variables(m, problem, arcs, demands_of)
    _add_conservation(m, problem, arcs, demands_of)
    _add_tunnels(m, problem)
    _add_capacity(m, problem, arcs)
    _add_shedding(m, problem)
    _add_purchases(m, problem)
    _add_goal(m, problem, arcs)
    return m


def _add_variables(
    m: pyo.ConcreteModel,
    problem: CapacityPlanning,
    arcs: Arcs,
    demands_of: Mapping[tuple[int, int], list[int]],
) -> None:
    """Add the sets, and the variables of purchases, flows and demand that is shed."""
    import pyomo.environ as pyo

    limits = largest_counts(problem)
    years, states = len(problem.year_numbers), 1 + len(problem.states.names)
    targets = sorted({target for target, _ in demands_of})
    m.T, m.S = pyo.Set(initialize=range(years)), pyo.Set(initialize=range(states))
    m.K, m.A = pyo.Set(initialize=targets), pyo.Set(initialize=range(len(arcs.line)))
    m.M, m.L = (
        pyo.Set(initialize=range(len(problem.options.link))),
        pyo.Set(initialize=range(len(problem.lines))),
    )
    m.D, m.V = pyo.Set(initialize=range(len(problem.demands))), pyo.Set(initialize=range(len(problem.nodes)))
    m.n = pyo.Var(m.M, m.T, domain=pyo.NonNegativeIntegers, bounds=lambda _, i, __: (0, limits[i]))
    m.z = pyo.Var(m.L, m.T, domain=pyo.Binary)
    m.f = pyo.Var(m.T, m.S, m.K, m.A, domain=pyo.NonNegativeReals)  # Mbit/s
    m.shed = pyo.Var(m.T, m.S, m.D, domain=pyo.NonNegativeReals)
    m.w = pyo.Var(domain=pyo.NonNegativeReals)


def _required(problem: CapacityPlanning, t: int, s: int, d: int) -> float:
    """Return the rate of a demand that must be routed in a year and a state, Mbit/s."""
    off = problem.cut_off
    return 0.0 if off[0, d] or off[s, d] else float(problem.rate_mbps[t, d] * problem.required_share[s, d])


def _add_conservation(
    m: pyo.ConcreteModel,
    problem: CapacityPlanning,
    arcs: Arcs,
    demands_of: Mapping[tuple[int, int], list[int]],
) -> None:
    """Add the conservation of the flow to each target at each node."""
    import pyomo.environ as pyo

    def conserves(m: pyo.ConcreteModel, t: int, s: int, k: int, v: int) -> Any:
        if v == k:
            return pyo.Constraint.Skip
        leaves = sum(m.f[t, s, k, a] for a in m.A if arcs.start[a] == v)
        enters = sum(m.f[t, s, k, a] for a in m.A if arcs.end[a] == v)
        demands_here = demands_of.get((k, v), [])
        supply = sum(_required(problem, t, s, d) - m.shed[t, s, d] for d in demands_here)
        balance = leaves - enters
        return pyo.Constraint.Skip if isinstance(balance, int) and not demands_here else balance == supply

    m.conserves = pyo.Constraint(m.T, m.S, m.K, m.V, rule=conserves)


def _add_tunnels(m: pyo.ConcreteModel, problem: CapacityPlanning) -> None:
    """Add the rates of tunnels, which carry the demands of their pair without its shed part."""
    import pyomo.environ as pyo

    paths = problem.tunnel_paths
    m.P = pyo.Set(initialize=range(0 if paths is None else len(paths.names)))
    m.x = pyo.Var(m.T, m.S, m.P, domain=pyo.NonNegativeReals)  # Mbit/s in each tunnel
    if paths is None:
        return

    def tunnelled(m: pyo.ConcreteModel, t: int, s: int, p: int) -> Any:
        demands_of = np.flatnonzero(paths.pair_of == p).tolist()
        carried = sum(m.x[t, s, i] for i in np.flatnonzero(paths.pair == p).tolist())
        return carried == sum(_required(problem, t, s, d) - m.shed[t, s, d] for d in demands_of)

    m.tunnelled = pyo.Constraint(m.T, m.S, range(paths.pairs), rule=tunnelled)


def _add_capacity(m: pyo.ConcreteModel, problem: CapacityPlanning, arcs: Arcs) -> None:
    """Add the capacity of each link, installed and bought, in each year and state."""
    import pyomo.environ as pyo

    rows = range(len(arcs.row_line))
    shares = [arcs.shares.indices[arcs.shares.indptr[c] : arcs.shares.indptr[c + 1]] for c in rows]
    in_tunnels, options = _tunnels_on(problem, arcs), problem.options
    modules = _modules_of(problem)

    def capacity(m: pyo.ConcreteModel, t: int, s: int, c: int) -> Any:
        line = int(arcs.row_line[c])
        is_down = s > 0 and bool(problem.states.link_down[s - 1, line])
        load = sum(m.f[t, s, k, a] for k in m.K for a in shares[c].tolist())
        load += sum(m.x[t, s, i] for i in in_tunnels[c])
        bought = sum(
            float(options.size[i]) * m.n[i, u]
            for i in modules[line]
            for u in range(t + 1)
            if u == t or not options.leased[i]
        )
        if isinstance(load, int):
            return pyo.Constraint.Skip
        usable = float(problem.utilization_limit[s])
        return load <= (0 if is_down else usable * (float(problem.installed_mbps[line]) + bought))

    m.capacity = pyo.Constraint(m.T, m.S, rows, rule=capacity)


def _add_shedding(m: pyo.ConcreteModel, problem: CapacityPlanning) -> None:
    """Add the limits of the demand that is shed."""
    import pyomo.environ as pyo

    cut = (problem.rate_mbps * problem.cut_off[0]).sum(axis=1).tolist()
    shed_limit = least_shed(problem).tolist()

    def unserved(m: pyo.ConcreteModel, t: int, s: int) -> Any:
        allowed = shed_limit[t][s] if problem.budget is None else m.w
        return sum(m.shed[t, s, d] for d in m.D) + cut[t] <= allowed

    m.sheds = pyo.Constraint(
        m.T, m.S, m.D, rule=lambda m, t, s, d: m.shed[t, s, d] <= _required(problem, t, s, d)
    )
    m.unserved = pyo.Constraint(m.T, m.S, rule=unserved)


def _add_purchases(m: pyo.ConcreteModel, problem: CapacityPlanning) -> None:
    """Add the limits of modules, and the setup of links that get some."""
    import pyomo.environ as pyo

    options, limits, modules = problem.options, largest_counts(problem), _modules_of(problem)

    def one(m: pyo.ConcreteModel, line: int, t: int) -> Any:
        if not modules[line]:
            return pyo.Constraint.Skip
        return (
            sum(m.n[i, u] for i in modules[line] for u in m.T if u <= t and (u == t or not options.leased[i]))
            <= 1
        )

    def limits_owned(m: pyo.ConcreteModel, i: int) -> Any:
        if options.leased[i]:  # its bounds limit it in each year
            return pyo.Constraint.Skip
        return sum(m.n[i, t] for t in m.T) <= float(limits[i])

    def sets_up(m: pyo.ConcreteModel, i: int, t: int) -> Any:
        paid = sum(m.z[int(options.link[i]), u] for u in range(t + 1))
        return m.n[i, t] <= float(limits[i]) * paid

    m.limits = pyo.Constraint(m.M, rule=limits_owned)
    if problem.one_module:
        m.one = pyo.Constraint(m.L, m.T, rule=one)
    m.setup = pyo.Constraint(m.M, m.T, rule=sets_up)


def _add_goal(m: pyo.ConcreteModel, problem: CapacityPlanning, arcs: Arcs) -> None:
    """Add the objective: the cost, or with a budget the worst unserved demand."""
    import pyomo.environ as pyo

    price = problem.price_factor.tolist()
    spending = sum(
        price[t]
        * (
            sum(float(problem.options.cost[i]) * m.n[i, t] for i in m.M)
            + sum(float(problem.setup_cost[line]) * m.z[line, t] for line in m.L)
        )
        for t in m.T
    )
    if problem.budget is None:
        routing = _sum_routing(m, problem, arcs)
        m.goal = pyo.Objective(expr=spending + routing + problem.installed_cost, sense=pyo.minimize)
        return
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    m.budget = pyo.Constraint(expr=spending <= problem.budget)
    m.proof_objective = pyo.Expression(expr=offered - m.w)
    m.goal = pyo.Objective(expr=m.w, sense=pyo.minimize)


def _sum_routing(m: pyo.ConcreteModel, problem: CapacityPlanning, arcs: Arcs) -> Any:
    """Return the cost of routing in the normal state, over all years."""
    price = problem.price_factor.tolist()
    cost = problem.routing_cost[arcs.line].tolist()
    routing = sum(price[t] * cost[a] * m.f[t, 0, k, a] for t in m.T for k in m.K for a in m.A if cost[a])
    along = _tunnel_costs(problem, arcs)
    return routing + sum(price[t] * along[i] * m.x[t, 0, i] for t in m.T for i in m.P)


def _modules_of(problem: CapacityPlanning) -> list[list[int]]:
    """Return the modules of each link."""
    return [np.flatnonzero(problem.options.link == line).tolist() for line in range(len(problem.lines))]


def _free_demands(problem: CapacityPlanning) -> dict[tuple[int, int], list[int]]:
    """Return the demands without tunnels by target and source."""
    paths = problem.tunnel_paths
    free = range(len(problem.demands)) if paths is None else np.flatnonzero(paths.pair_of < 0).tolist()
    demands_of: dict[tuple[int, int], list[int]] = {}
    for d in free:
        demands_of.setdefault((int(problem.target[d]), int(problem.source[d])), []).append(d)
    return demands_of


def _tunnels_on(problem: CapacityPlanning, arcs: Arcs) -> list[list[int]]:
    """Return the tunnels that use each capacity, (C,)."""
    paths = problem.tunnel_paths
    if paths is None:
        return [[] for _ in arcs.row_line]
    uses = (arcs.shares @ paths.arcs.T).toarray()
    return [np.flatnonzero(row).tolist() for row in uses]


def _tunnel_costs(problem: CapacityPlanning, arcs: Arcs) -> list[float]:
    """Return the routing cost of each Mbit/s in each tunnel, (T,)."""
    paths = problem.tunnel_paths
    return [] if paths is None else (paths.arcs @ problem.routing_cost[arcs.line]).tolist()
