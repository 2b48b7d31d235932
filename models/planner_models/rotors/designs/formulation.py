"""Formal models of system `rotors`: in Pyomo, and as a program open to constraints of the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.formatting import amount
from planner.options import Service
from planner_models.rotors.designs.rotor_routing import (
    ROTATION_SCOPE,
    build_model,
    every_path,
    fit_rates,
    read_paths,
)
from planner_models.rotors.plan.plan import Routing, make_plan
from planner_models.rotors.plan.timetable import rotate
from planner_models.rotors.problem.problem import DARK, RotorNetwork

if TYPE_CHECKING:
    import pyomo.environ as pyo


MOST_RACKS = 8
SCOPE: Final = f"{ROTATION_SCOPE}, direct or by one other rack"
DIRECT: Final = ""
"""Rack in between of a direct path."""


def formulation(problem: RotorNetwork) -> pyo.ConcreteModel:
    """Return the model of traffic over the rotation in time, direct or by one other rack.

    In each interval s of the cycle, of length l_s, in which circuits stay as they are, rack i has a queue
    Q_ij of its own traffic to j, and a queue B_ij of others' traffic to j. Both repeat after a cycle.

    maximize    sum of a_ij                                        a_ij <= D_ij
    subject to  Q_ij,s+1 = Q_ij,s + l_s a_ij - x_ij,s - sum_k y_ikj,s
                B_kj,s+1 = B_kj,s + sum_i y_ikj,s - z_kj,s
                x_ij,s + z_ij,s + sum_d y_ijd,s <= l_s r_ij        where a circuit is up, else 0

    Mbit/s, bits and us. `two_hop` solves it over mean capacities, which has the same optimum; see
    `rotor_routing`.

    raises  InputError for more than 8 racks, as there is a variable for each path and interval
    """
    import pyomo.environ as pyo  # only needed for the formal model

    racks = len(problem.racks)
    if racks > MOST_RACKS:
        raise InputError(f"formulation: there are {racks} racks, must be at most {MOST_RACKS}")
    lengths, up = _list_circuits(problem)
    m = pyo.ConcreteModel("traffic over a rotation")
    _add_variables(m, problem, len(lengths), up)
    _add_queues(m, racks, lengths)

    def fits(m: pyo.ConcreteModel, s: int, i: int, j: int) -> Any:
        first = sum(m.y[s, i, j, d] for d in range(racks) if (s, i, j, d) in m.Y)
        return m.x[s, i, j] + m.z[s, i, j] + first <= up[s, i, j]

    m.fits = pyo.Constraint(m.U, rule=fits)
    m.goal = pyo.Objective(expr=sum(m.a[pair] for pair in m.D), sense=pyo.maximize)
    return m


def _list_circuits(problem: RotorNetwork) -> tuple[Floats, dict[tuple[int, int, int], float]]:
    """Return the lengths of intervals, us, and the bits of each circuit by interval, source and target."""
    timetable, racks = rotate(problem), len(problem.racks)
    if len(timetable.switch):
        lengths, targets = timetable.intervals
    else:  # all racks have failed
        lengths, targets = np.array([timetable.period_us]), np.full((1, 1, racks), DARK)
    rate = problem.link_mbps
    up = {
        (s, i, int(target[i])): float(lengths[s] * rate[i, target[i]])
        for s in range(len(lengths))
        for target in targets[s]
        for i in range(racks)
        if target[i] != DARK
    }
    return lengths, up


def _add_variables(
    m: pyo.ConcreteModel, problem: RotorNetwork, intervals: int, up: Mapping[tuple[int, int, int], float]
) -> None:
    """Add the sets, and the variables of accepted traffic, of traffic on circuits, and of queues."""
    import pyomo.environ as pyo

    demand, racks, nonnegative = problem.demand_mbps, len(problem.racks), pyo.NonNegativeReals
    pairs = [(i, j) for i in range(racks) for j in range(racks) if i != j]
    m.S = pyo.RangeSet(0, intervals - 1)
    m.IJ = pyo.Set(initialize=pairs, dimen=2)
    m.D = pyo.Set(initialize=[pair for pair in pairs if demand[pair] > 0], dimen=2)
    m.U = pyo.Set(initialize=sorted(up), dimen=3)
    m.Y = pyo.Set(
        initialize=[(s, i, k, j) for s, i, k in sorted(up) for j in range(racks) if k != j and (i, j) in m.D],
        dimen=4,
    )
    m.a = pyo.Var(m.D, domain=nonnegative, bounds={pair: (0, float(demand[pair])) for pair in pairs})
    m.x, m.z = pyo.Var(m.U, domain=nonnegative), pyo.Var(m.U, domain=nonnegative)
    m.y = pyo.Var(m.Y, domain=nonnegative)
    m.Q, m.B = pyo.Var(m.S, m.IJ, domain=nonnegative), pyo.Var(m.S, m.IJ, domain=nonnegative)


def _add_queues(m: pyo.ConcreteModel, racks: int, lengths: Floats) -> None:
    """Add the queues of racks' own traffic and of others' traffic, from each interval to the next."""
    import pyomo.environ as pyo

    count = len(lengths)

    def own_queue(m: pyo.ConcreteModel, s: int, i: int, j: int) -> Any:
        change = float(lengths[s]) * m.a[i, j] if (i, j) in m.D else 0
        change -= m.x[s, i, j] if (s, i, j) in m.U else 0
        change -= sum(m.y[s, i, k, j] for k in range(racks) if (s, i, k, j) in m.Y)
        return m.Q[(s + 1) % count, i, j] == m.Q[s, i, j] + change

    def relayed_queue(m: pyo.ConcreteModel, s: int, k: int, j: int) -> Any:
        change = sum(m.y[s, i, k, j] for i in range(racks) if (s, i, k, j) in m.Y)
        change -= m.z[s, k, j] if (s, k, j) in m.U else 0
        return m.B[(s + 1) % count, k, j] == m.B[s, k, j] + change

    m.own = pyo.Constraint(m.S, m.IJ, rule=own_queue)
    m.relayed = pyo.Constraint(m.S, m.IJ, rule=relayed_queue)


def open_model(problem: RotorNetwork, *, service: Service = "best") -> OpenModel[Routing]:
    """Return the linear program over all paths and mean capacities, open to changes.

    Variables, with the columns of their members:

    rate  Mbit/s on a path, direct or by another rack (source, via, target); via is blank for direct paths

    Constraints: capacity and demand of each pair of racks. Among plans that deliver the same, the one with
    least relayed traffic. It has a variable for each path, the cube of the number of racks: practical for up
    to about 40 racks.

    raises  InputError where no demand has a path, and with service "all" where some has none
    """
    timetable, demand = rotate(problem), problem.demand_mbps
    capacity = timetable.up_share * problem.link_mbps
    is_path = every_path(capacity, demand)
    if not is_path.any():
        raise InputError("demands: none has a path over the rotation, so that there is nothing to model")
    source, via, target = np.nonzero(is_path)
    program = build_model(problem)
    if service == "all":
        lost = np.where(is_path.any(axis=1), 0.0, problem.offered_mbps)
        if lost.sum() > 0:
            raise InputError(
                f"service is 'all', but demands of {amount(float(lost.sum()), 'Mbit/s')} have no path"
            )
        m = ProgramBuilder.extend(program)
        racks = len(demand)
        m.constrain("all", m["rate"].sum_by(source * racks + target, racks**2), lower=demand.ravel())
        program = m.build()

    def read(x: Floats) -> Routing:
        rates = read_paths(is_path, np.maximum(program.values("rate", x), 0.0))
        return make_plan(problem, timetable, fit_rates(rates, capacity, demand), None)

    def list_paths() -> pd.DataFrame:
        names = pd.Index(problem.names)
        blank = pd.Index([*problem.names, DIRECT])
        rack = np.where(via == source, len(names), via)
        return pd.DataFrame(
            {
                "source": pd.Categorical.from_codes(source, names),
                "via": pd.Categorical.from_codes(rack, blank),
                "target": pd.Categorical.from_codes(target, names),
            }
        )

    def relay_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return m["rate"][via != source].sum()

    def pass_least(m: ProgramBuilder, rack: str, _optimum: Floats) -> Expression:
        names = list(problem.names)
        if rack not in names:
            raise InputError(f"least_through: '{rack}' is no rack{did_you_mean(rack, names)}")
        row = names.index(rack)
        return m["rate"][(via == row) & (via != source)].sum()

    def fill_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        largest, racks, rate = m.variables("busiest", ()), len(demand), m["rate"]
        relayed = np.flatnonzero(via != source)
        load = rate.sum_by(via * racks + target, racks**2)
        load = load + rate[relayed].sum_by(source[relayed] * racks + via[relayed], racks**2)
        m.constrain("load of the busiest", load - capacity.ravel() * largest, upper=0.0)
        return largest.sum()

    return OpenModel(
        program=program,
        read=read,
        members={"rate": list_paths},
        then={"rate": (via != source).astype(float)},
        goals={
            "least_relayed": Goal(about="traffic that another rack relays", unit="Mbit/s", build=relay_least),
            "least_busiest": Goal(about="largest utilization of a pair's circuits", build=fill_least),
            "least_through": Goal(
                about="traffic that a rack relays", unit="Mbit/s", build=pass_least, value="rack"
            ),
        },
        scope=SCOPE,
    )
