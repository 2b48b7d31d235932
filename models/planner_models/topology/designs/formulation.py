"""Formal models of system `topology`: in Pyomo, and as a program open to constraints of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.completion import complete
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.topology.designs import optimum
from planner_models.topology.designs.decision import KEPT
from planner_models.topology.designs.joint_program import JointProgram, Paths, every_path, port_bound
from planner_models.topology.plan.metrics import say_without_path
from planner_models.topology.plan.plan import Topology, make_plan, read_links
from planner_models.topology.problem.problem import Fabric, pairs_of

if TYPE_CHECKING:
    import pyomo.environ as pyo


TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none."""
ABOUT: Final = "the factor by which all demands can grow at once"


def formulation(problem: Fabric) -> pyo.ConcreteModel:
    """Return the planning of links and routing together as a model.

    maximize    t
    subject to  x_ij + sum_k x_ikj = t D_ij                                for every demand from i to j
                x_ij + sum_k (x_ijk + x_kij) <= r_ij n_ij                  for every direction
                sum_j n_ij <= ports of i                                   n whole, the same both ways
                sum_ij m_ij <= move limit, n_ij - m_ij <= links of today   where moves are limited
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("topology engineering")
    _add_variables(m, problem)
    _add_routing(m, problem)
    m.ports = pyo.Constraint(
        m.B, rule=lambda m, i: sum(_links(m, i, j) for j in m.B if j != i) <= int(problem.ports[i])
    )
    present, limit = problem.present, problem.move_limit
    if present is not None and limit is not None:
        m.m = pyo.Var(m.P, domain=pyo.NonNegativeReals)
        m.made = pyo.Constraint(m.P, rule=lambda m, i, j: m.n[i, j] - m.m[i, j] <= int(present[i, j]))
        m.moves = pyo.Constraint(expr=sum(m.m[i, j] for i, j in m.P) <= limit)
    m.goal = pyo.Objective(expr=m.t, sense=pyo.maximize)
    return m


def _add_variables(m: pyo.ConcreteModel, problem: Fabric) -> None:
    """Add the sets, and the variables of links and of traffic, direct or by a transit block."""
    import pyomo.environ as pyo

    count, demand = len(problem.blocks), problem.demand_mbps
    first, other = (ends.tolist() for ends in pairs_of(problem))
    m.B = pyo.RangeSet(0, count - 1)
    m.P = pyo.Set(initialize=list(zip(first, other, strict=True)))
    m.A = pyo.Set(initialize=[(i, j) for i in range(count) for j in range(count) if i != j])
    m.D = pyo.Set(initialize=[(i, j) for i, j in m.A if demand[i, j] > 0])
    m.T = pyo.Set(initialize=[(i, k, j) for i, j in m.D for k in range(count) if k not in (i, j)])
    m.t = pyo.Var(domain=pyo.NonNegativeReals)
    m.n = pyo.Var(m.P, domain=pyo.NonNegativeIntegers)
    m.x = pyo.Var(m.D, domain=pyo.NonNegativeReals)
    m.y = pyo.Var(m.T, domain=pyo.NonNegativeReals)


def _add_routing(m: pyo.ConcreteModel, problem: Fabric) -> None:
    """Add the routes of all demands, and the capacity of each direction."""
    import pyomo.environ as pyo

    demand, rate = problem.demand_mbps, problem.link_mbps

    def routes(m: pyo.ConcreteModel, i: int, j: int) -> Any:
        by_transit = sum(m.y[i, k, j] for k in m.B if k not in (i, j))
        return m.x[i, j] + by_transit == float(demand[i, j]) * m.t

    def carries(m: pyo.ConcreteModel, i: int, j: int) -> Any:
        load = m.x[i, j] if (i, j) in m.D else 0
        load += sum(m.y[i, j, b] for b in m.B if (i, j, b) in m.T)
        load += sum(m.y[b, i, j] for b in m.B if (b, i, j) in m.T)
        return load <= float(rate[i, j]) * _links(m, i, j)

    m.routes = pyo.Constraint(m.D, rule=routes)
    m.carries = pyo.Constraint(m.A, rule=carries)


def _links(m: pyo.ConcreteModel, i: int, j: int) -> Any:
    """Return the links between two blocks."""
    return m.n[min(i, j), max(i, j)]


def open_model(problem: Fabric, *, service: Service = "best") -> OpenModel[Topology]:
    """Return the integer program over links and all transit paths, open to changes.

    Variables, with the columns of their members:

    links  links between two blocks (block, other_block)
    path   Mbit/s of a demand by a transit block, with all demand times the scale (source, via, target); what
           remains of a demand goes direct
    scale  factor by which all demand is multiplied
    made   links that are not of today, where moves are limited (block, other_block)

    Constraints: load of each direction, direct, ports, made and moves. The matrix `ends` (blocks, pairs) is 1
    where a block is an end of a pair. Among equal plans, transit is least for the links that are found. The
    search starts from the plan of the design `optimum`. It is practical for up to about 8 blocks; beyond,
    it ends after 10 s with a gap.

    raises  InputError where no demand has a path, and with service "all" where some demand has none
    """
    servable = problem.servable
    if servable is None or port_bound(servable) <= 0:
        raise InputError("demands: none has a path, so that there is nothing to model")
    if service == "all" and servable is not problem:
        raise InputError(f"service is 'all', but {say_without_path(problem).rstrip('.')}")
    joint, paths = JointProgram(problem=servable), every_path(servable)
    program = _in_mbps(joint, joint.build(paths, integer=True))

    def read(x: Floats) -> Topology:
        links, shares = joint.read(_in_units(joint, program, x), paths)
        return make_plan(problem, np.round(links).astype(np.int64), shares)

    @cache
    def start(options: Options) -> Floats | None:
        plan = optimum.plan(servable, options=options).plan
        if plan is None:
            return None
        links = read_links(servable, plan.topology, "topology")[joint.pairs]
        return complete(program, {"links": links.astype(float)}, options)

    return OpenModel(
        program=program,
        read=read,
        members=_list_members(problem, joint, paths),
        matrices={"ends": _list_ends(joint)},
        then={"path": 1.0},
        goals=_make_goals(problem, joint, paths),
        varies="links",
        follows=frozenset({"scale"}),
        start=start,
        options={"time_limit_s": TIME_LIMIT_S},
        guarantees=KEPT,
    )


def _factors(joint: JointProgram, program: LinearProgram) -> Floats:
    """Return the size of a unit of each variable in units of the joint program, (n,)."""
    factors = np.ones(program.shape[1])
    for block in program.columns:
        if block.name == "scale":
            factors[block.start : block.stop] = 1 / joint.unit
        elif block.name == "path":
            factors[block.start : block.stop] = 1 / joint.problem.link_mbps.max()
    return factors


def _in_units(joint: JointProgram, program: LinearProgram, x: Floats) -> Floats:
    """Return values x (n,) in the units of the joint program."""
    return x * _factors(joint, program)


def _in_mbps(joint: JointProgram, program: LinearProgram) -> LinearProgram:
    """Return the program with the demand scale and traffic in Mbit/s in place of its own units."""
    columns = _factors(joint, program)
    rows = np.ones(program.shape[0])
    for block in program.row_blocks:
        if block.name in ("load", "direct"):
            rows[block.start : block.stop] = joint.problem.link_mbps.max()
    cost = np.zeros(program.shape[1])
    cost[next(block.start for block in program.columns if block.name == "scale")] = 1.0
    changed = replace(
        program,
        cost=cost,
        matrix=sp.csr_array(sp.diags_array(rows) @ program.matrix @ sp.diags_array(columns)),
        row_lower=program.row_lower * rows,
        row_upper=program.row_upper * rows,
        lower=program.lower / columns,
        upper=program.upper / columns,
    )
    return changed.describe(ABOUT, metric="demand_scale")


def _list_ends(joint: JointProgram) -> sp.csr_array:
    """Return the matrix (blocks, pairs) of the blocks that are ends of pairs."""
    first, other = joint.pairs
    count, pairs = len(joint.demand), np.arange(len(first))
    rows, columns = np.concatenate([first, other]), np.concatenate([pairs, pairs])
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(count, len(first)))


def _list_members(
    problem: Fabric, joint: JointProgram, paths: Paths
) -> Mapping[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""
    names = pd.Index(problem.names)
    first, other = joint.pairs

    def name(rows: Ints) -> Any:
        return pd.Categorical.from_codes(rows, names)

    def list_pairs() -> pd.DataFrame:
        return pd.DataFrame({"block": name(first), "other_block": name(other)})

    def list_paths() -> pd.DataFrame:
        return pd.DataFrame(
            {"source": name(paths.source), "via": name(paths.via), "target": name(paths.target)}
        )

    members = {"links": list_pairs, "path": list_paths}
    return members if problem.move_limit is None else {**members, "made": list_pairs}


def _make_goals(problem: Fabric, joint: JointProgram, paths: Paths) -> dict[str, Goal]:
    """Return the aims by which plans near the optimum may differ."""

    def change_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        assert problem.present is not None
        changed = m.variables("changed", len(joint.pairs[0]))
        m.constrain("changed links", m["links"] - changed, upper=problem.present[joint.pairs])
        return changed.sum()

    def link_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return m["links"].sum()

    def transit_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return m["path"].sum()

    def pass_least(m: ProgramBuilder, block: str, _optimum: Floats) -> Expression:
        if block not in problem.names:
            raise InputError(f"least_through: '{block}' is no block{did_you_mean(block, problem.names)}")
        return m["path"][np.flatnonzero(paths.via == list(problem.names).index(block))].sum()

    goals = {
        "fewest_links": Goal(about="links of the topology", build=link_least),
        "least_transit": Goal(
            about="traffic by transit blocks, all demand times the scale", unit="Mbit/s", build=transit_least
        ),
        "least_through": Goal(
            about="traffic in transit through a block, all demand times the scale",
            unit="Mbit/s",
            build=pass_least,
            value="block",
        ),
    }
    if problem.present is not None:
        goals["fewest_changes"] = Goal(about="links that are not of today", build=change_least)
    return goals
