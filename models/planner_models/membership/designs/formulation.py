"""The formal model of system `membership` in Pyomo: members, leader and timeout over all failures."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.arrays import Bools, Floats
from planner.contract.units import MONTH_S
from planner.errors import InputError
from planner.search.deadline import NEVER
from planner_models.membership.designs.placement import LeaderSearch
from planner_models.membership.designs.planned import make_search
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.tree import SiteTree

if TYPE_CHECKING:
    import pyomo.environ as pyo

MAX_ELEMENTS: Final = 14
"""Sites, hosts and risks that may fail, of which the model has every combination."""


def formulation(problem: Membership) -> pyo.ConcreteModel:
    """Return the seconds down of voting members as a mixed-integer program, for one service.

    minimize    month sum_w p_w y_w + W
    subject to  sum_s x_s = n,  x_s <= hosts of s,  sum_s price_s x_s <= limit
                q (1 - y_w) <= sum of x_s over sites that are up in scenario w
                sum_(l,T) z_lT = 1,  x_l >= sum_T z_lT,  q sum_T z_lT <= sum of x_s over sites near l
                W >= failovers and pauses of l + sum_s alarms_slT (x_s - [s = l]) - M (1 - z_lT)
                x_s <= hosts of s (1 - z_lT)     where s is farther from l than the timeout T allows

    A scenario w is one combination of sites, hosts and risks that are down, with probability p_w.

    raises  InputError for several services, and for more than 14 elements that may fail
    """
    import pyomo.environ as pyo  # only needed for the formal model

    if len(problem.service_list) != 1:
        raise InputError("services: the formal model has one service")
    search = make_search(problem, problem.service_list[0], "down", deadline=NEVER)
    leaves = [leaf for leaf in problem.leaves.tolist() if search.allowed[leaf]]
    capacity = {leaf: min(int(problem.tree.capacity[leaf]), search.size) for leaf in leaves}
    units = [(leaf, unit) for leaf in leaves for unit in range(_units(problem.tree, leaf, search.size))]
    m = pyo.ConcreteModel("members, leader and timeout")
    m.S, m.U = pyo.Set(initialize=leaves), pyo.RangeSet(0, len(units) - 1)
    m.Z = pyo.Set(
        initialize=[(leaf, t) for leaf in search.leaders.tolist() for t in range(len(search.timeouts))]
    )
    _add_members(m, problem, search, units, capacity)
    unserved = _add_quorums(m, problem.tree, search.quorum, units)
    m.z, m.W = pyo.Var(m.Z, domain=pyo.Binary), pyo.Var(domain=pyo.NonNegativeReals)
    _add_leaders(m, search)
    _add_watching(m, search, capacity)
    m.proof_objective = pyo.Expression(expr=MONTH_S * unserved + m.W)
    m.goal = pyo.Objective(expr=m.proof_objective, sense=pyo.minimize)
    return m


def _add_members(
    m: pyo.ConcreteModel,
    problem: Membership,
    search: LeaderSearch,
    units: list[tuple[int, int]],
    capacity: dict[int, int],
) -> None:
    """Add the members of each unit and site, their number in all, and the limit of their price."""
    import pyomo.environ as pyo

    hosts = [1 if problem.tree.is_host[leaf] else capacity[leaf] for leaf, _ in units]
    m.u = pyo.Var(m.U, domain=pyo.NonNegativeIntegers, bounds=lambda _, unit: (0, hosts[unit]))
    m.x = pyo.Expression(m.S, rule=lambda m, s: sum(m.u[unit] for unit in m.U if units[unit][0] == s))
    m.members = pyo.Constraint(expr=sum(m.u[unit] for unit in m.U) == search.size)
    witnesses = [s for s in m.S if problem.is_witness[s]]
    if witnesses:
        m.data = pyo.Constraint(expr=sum(m.x[s] for s in witnesses) <= search.witnesses)
    limit = search.service.price_limit
    if limit is not None:
        m.price = pyo.Constraint(expr=sum(float(problem.price[s]) * m.x[s] for s in m.S) <= limit)


def _add_quorums(m: pyo.ConcreteModel, tree: SiteTree, quorum: int, units: list[tuple[int, int]]) -> Any:
    """Add whether each scenario is without a quorum; return the share of time without one."""
    import pyomo.environ as pyo

    probability, is_up = enumerate_failures(tree, units)
    m.w = pyo.RangeSet(0, len(probability) - 1)
    m.y = pyo.Var(m.w, domain=pyo.Binary)
    m.quorum = pyo.Constraint(
        m.w,
        rule=lambda m, w: (
            quorum * (1 - m.y[w]) <= sum(m.u[unit] for unit in m.U if is_up[w, unit]) + 0 * m.y[w]
        ),
    )
    return sum(float(probability[w]) * m.y[w] for w in m.w)


def _units(tree: SiteTree, leaf: int, size: int) -> int:
    """Return the parts of a leaf that fail separately: its hosts, or the site as one."""
    return min(int(tree.capacity[leaf]), size) if tree.is_host[leaf] else 1


def _add_leaders(m: pyo.ConcreteModel, search: LeaderSearch) -> None:
    """Add the choice of one leader and timeout, with a quorum near the leader."""
    import pyomo.environ as pyo

    leaders, timeouts = search.leaders.tolist(), range(len(search.timeouts))
    near = {leaf: search.near(leaf) for leaf in leaders}
    m.single = pyo.Constraint(expr=sum(m.z[key] for key in m.Z) == 1)
    m.leads = pyo.Constraint(leaders, rule=lambda m, s: m.x[s] >= sum(m.z[s, t] for t in timeouts))
    m.commits = pyo.Constraint(
        leaders,
        rule=lambda m, s: (
            search.quorum_near(s) * sum(m.z[s, t] for t in timeouts)
            <= sum(m.x[other] for other in m.S if near[s][other])
        ),
    )


def _add_watching(m: pyo.ConcreteModel, search: LeaderSearch, capacity: dict[int, int]) -> None:
    """Add the seconds of watching with the selected leader and timeout, and the sites too far for it."""
    import pyomo.environ as pyo

    base = {leaf: search.base_s(leaf) for leaf in search.leaders.tolist()}
    alarms = {leaf: search.member_s(leaf) for leaf in search.leaders.tolist()}

    def watches(m: pyo.ConcreteModel, s: int, t: int) -> Any:
        cost = {other: float(alarms[s][other, t]) for other in m.S if np.isfinite(alarms[s][other, t])}
        largest = float(base[s][t]) + search.size * max(cost.values(), default=0.0)
        of_leader = cost.get(s, 0.0)
        total = sum(cost[other] * m.x[other] for other in cost) - of_leader
        return float(base[s][t]) + total - largest * (1 - m.z[s, t]) <= m.W

    m.watches = pyo.Constraint(m.Z, rule=watches)
    too_far = [
        (s, t, other) for s, t in m.Z for other in m.S if not np.isfinite(alarms[s][other, t]) and other != s
    ]
    m.reaches = pyo.Constraint(
        too_far, rule=lambda m, s, t, other: m.x[other] <= capacity[other] * (1 - m.z[s, t])
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Elements:
    """Elements that may fail: sites in use, risks that strike them, and units that are hosts, in this order.

    down  (E,) share of time that each is down
    """

    sites: list[int]
    risks: list[int]
    hosts: list[tuple[int, int]]
    down: Floats

    @classmethod
    def of(cls, tree: SiteTree, units: list[tuple[int, int]]) -> _Elements:
        """Return the elements of units; raises InputError for more than 14."""
        paths = {site for leaf, _ in units for site in tree.paths[leaf]}
        sites = sorted(site for site in paths if not tree.is_host[site])
        risks = np.flatnonzero(tree.risk_sites[:, sorted(paths)].any(axis=1)).tolist()
        hosts = [unit for unit in units if tree.is_host[unit[0]]]
        down = np.array([*tree.down[sites], *tree.risk_down[risks], *(tree.down[leaf] for leaf, _ in hosts)])
        if len(down) > MAX_ELEMENTS:
            raise InputError(
                f"sites: {len(down)} sites, hosts and risks may fail; the formal model has at most "
                f"{MAX_ELEMENTS}"
            )
        return cls(sites=sites, risks=risks, hosts=hosts, down=down)

    def failed(self, tree: SiteTree, is_down: Bools) -> tuple[set[int], set[tuple[int, int]]]:
        """Return the sites and the hosts that are down, of the elements that are, (E,)."""
        first_host = len(self.sites) + len(self.risks)
        lost = {site for site, fails in zip(self.sites, is_down, strict=False) if fails}
        struck = [self.risks[row] for row in np.flatnonzero(is_down[len(self.sites) : first_host])]
        lost.update(np.flatnonzero(tree.risk_sites[struck].any(axis=0)).tolist())
        return lost, {self.hosts[row] for row in np.flatnonzero(is_down[first_host:])}


def enumerate_failures(tree: SiteTree, units: list[tuple[int, int]]) -> tuple[Floats, Floats]:
    """Return the probability of each combination of failures, (W,), and whether each unit is up, (W, U).

    units   leaf, and number of the host in it
    raises  InputError for more than 14 elements that may fail
    """
    elements = _Elements.of(tree, units)
    probability, states = [], []
    for failed in itertools.product([False, True], repeat=len(elements.down)):
        is_down = np.array(failed, dtype=bool)
        weight = float(np.prod(np.where(is_down, elements.down, 1 - elements.down)))
        if weight == 0:
            continue
        lost, stopped = elements.failed(tree, is_down)
        probability.append(weight)
        states.append([unit not in stopped and not lost.intersection(tree.paths[unit[0]]) for unit in units])
    return np.array(probability), np.array(states, dtype=float)
