"""The formal model of system `circuits` in Pyomo: days as permutations, in a week or in least time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner_models.circuits.problem.problem import Circuits

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Circuits) -> pyo.ConcreteModel:
    """Return the model of Eclipse over every permutation M of the racks, with the packet switch beside it.

    maximize    sum of X_ij + Y_ij                                  minimize T  (without a window)
    subject to  X_ij <= u_ij * sum of t_sM over s and M with i -> j
                X_ij + Y_ij <= D_ij                                 = D_ij
                sum of t_sM + night * z_sM <= W for each switch s   <= T
                shortest * z_sM <= t_sM <= W * z_sM,  z_sM in {0, 1}
                row and column sums of Y at most packet rate * W    * T

    Bits and microseconds. InputError for more than 6 racks, as there are n! permutations, and where
    circuits stay up at night, as then the order of days counts.

    source  Venkatakrishnan et al. 2016 (Eclipse), the problem that is solved greedily
    """
    import pyomo.environ as pyo  # only where the formal model is wanted

    n = len(problem.racks)
    if n > 6:
        raise InputError(f"formulation: {n} racks have {n}! permutations, must be at most 6 racks")
    if problem.dark == "changed":
        raise InputError("formulation: dark is changed, must be all: the model knows no order of days")
    m = pyo.ConcreteModel("circuit schedule")
    m.S = pyo.Set(initialize=range(problem.switches))
    u, wanted, p = problem.circuit_mbps, problem.bits, problem.packet_mbps
    window, night, shortest = problem.window_us, problem.night_us, problem.shortest_day_us
    permutations = list(itertools.permutations(range(n)))
    pairs = [(int(i), int(j)) for i, j in np.argwhere(wanted > 0)]
    # no day need be longer than the longest demand
    longest = max(shortest, max((float(wanted[i, j] / u[i, j]) for i, j in pairs), default=0.0))
    m.M = pyo.Set(initialize=range(len(permutations)))
    m.IJ = pyo.Set(initialize=pairs, dimen=2)
    m.X = pyo.Var(m.IJ, domain=pyo.NonNegativeReals)
    m.Y = pyo.Var(m.IJ, domain=pyo.NonNegativeReals)
    m.t = pyo.Var(m.S, m.M, domain=pyo.NonNegativeReals)
    m.z = pyo.Var(m.S, m.M, domain=pyo.Binary)
    end: Any = window
    if window is None:
        m.T = pyo.Var(domain=pyo.NonNegativeReals)
        end = m.T
    m.circuits = pyo.Constraint(
        m.IJ,
        rule=lambda m, i, j: (
            m.X[i, j] <= float(u[i, j]) * sum(m.t[s, k] for s in m.S for k in m.M if permutations[k][i] == j)
        ),
    )
    m.demand = pyo.Constraint(
        m.IJ,
        rule=lambda m, i, j: (
            m.X[i, j] + m.Y[i, j] <= float(wanted[i, j])
            if window is not None
            else m.X[i, j] + m.Y[i, j] == float(wanted[i, j])
        ),
    )
    m.week = pyo.Constraint(m.S, rule=lambda m, s: sum(m.t[s, k] + night * m.z[s, k] for k in m.M) <= end)
    m.used = pyo.Constraint(m.S, m.M, rule=lambda m, s, k: m.t[s, k] <= longest * m.z[s, k])
    m.shortest = pyo.Constraint(m.S, m.M, rule=lambda m, s, k: m.t[s, k] >= shortest * m.z[s, k])

    def sends(m: pyo.ConcreteModel, rack: int, way: int) -> Any:
        load = [m.Y[pair] for pair in pairs if pair[way] == rack]
        return sum(load) <= float(p[rack]) * end if load else pyo.Constraint.Skip

    m.packet = pyo.Constraint(range(n), range(2), rule=sends)
    served = sum(m.X[pair] + m.Y[pair] for pair in pairs)
    m.proof_objective = pyo.Expression(expr=served / end)  # Mbit/s
    if window is None:
        m.goal = pyo.Objective(expr=m.T, sense=pyo.minimize)
    else:
        m.goal = pyo.Objective(expr=served, sense=pyo.maximize)
    return m
