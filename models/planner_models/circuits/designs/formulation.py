"""The formal model of system `circuits` in Pyomo: days as permutations, in a week or in least time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.errors import InputError
from planner_models.circuits.designs import multicast_formulation
from planner_models.circuits.problem.problem import Circuits

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_RACKS: Final = 6
MOST_CHOICES: Final = 10_000
"""Days times permutations of a model that knows the order of days."""


def formulation(problem: Circuits) -> pyo.ConcreteModel:
    """Return the model of Eclipse over every permutation M of the racks, with the packet switch beside it.

    maximize    sum of X_ij + Y_ij                                  minimize T  (without a window)
    subject to  X_ij <= u_ij * sum of t_sM over s and M with i -> j
                X_ij + Y_ij <= D_ij                                 = D_ij
                sum of t_sM + night * z_sM <= W for each switch s   <= T
                shortest * z_sM <= t_sM <= W * z_sM,  z_sM in {0, 1}
                row and column sums of Y at most packet rate * W    * T

    Where circuits stay up at night, the order of days counts. Each switch then has numbered days, as many
    as there is time for, with t_sdM and z_sdM, and k_sdij is whether i -> j stays up after day d:

                X_ij <= u_ij * (sum of t_sdM over s, d and M with i -> j  +  night * sum of k_sdij)
                k_sdij <= sum of z_sdM over M with i -> j,  and the same for day d + 1
                sum of z_sdM over M <= 1,  and no more in day d + 1 than in day d

    Where circuits go to several racks, it is the model of `multicast_formulation`.

    Bits and microseconds. InputError for more than 6 racks, as there are n! permutations, and where the
    order counts for more than 10,000 days times permutations.

    source  Venkatakrishnan et al. 2016 (Eclipse), the problem that is solved greedily
    """
    import pyomo.environ as pyo  # only where the formal model is wanted

    if problem.uses_multicast_circuits:
        return multicast_formulation.formulation(problem)
    n = len(problem.racks)
    if n > MOST_RACKS:
        raise InputError(f"formulation: {n} racks have {n}! permutations, must be at most {MOST_RACKS} racks")
    m = pyo.ConcreteModel("circuit schedule")
    m.S = pyo.Set(initialize=range(problem.switches))
    u, bits, p = problem.circuit_mbps, problem.bits, problem.packet_mbps
    pairs = [(int(i), int(j)) for i, j in np.argwhere(bits > 0)]
    m.IJ = pyo.Set(initialize=pairs, dimen=2)
    m.X = pyo.Var(m.IJ, domain=pyo.NonNegativeReals)
    m.Y = pyo.Var(m.IJ, domain=pyo.NonNegativeReals)
    end: Any = problem.window_us
    if problem.window_us is None:
        m.T = pyo.Var(domain=pyo.NonNegativeReals)
        end = m.T
    is_ordered = problem.dark == "changed" and problem.night_us > 0
    up_us = (_add_days_in_order if is_ordered else _add_days)(m, problem, pairs, end)
    m.circuits = pyo.Constraint(m.IJ, rule=lambda m, i, j: m.X[i, j] <= float(u[i, j]) * up_us(i, j))
    m.demand = pyo.Constraint(
        m.IJ,
        rule=lambda m, i, j: (
            m.X[i, j] + m.Y[i, j] <= float(bits[i, j])
            if problem.window_us is not None
            else m.X[i, j] + m.Y[i, j] == float(bits[i, j])
        ),
    )

    def sends(m: pyo.ConcreteModel, rack: int, way: int) -> Any:
        load = [m.Y[pair] for pair in pairs if pair[way] == rack]
        return sum(load) <= float(p[rack]) * end if load else pyo.Constraint.Skip

    m.packet = pyo.Constraint(range(n), range(2), rule=sends)
    served = sum(m.X[pair] + m.Y[pair] for pair in pairs)
    m.proof_objective = pyo.Expression(expr=served / end)  # Mbit/s
    if problem.window_us is None:
        m.goal = pyo.Objective(expr=m.T, sense=pyo.minimize)
    else:
        m.goal = pyo.Objective(expr=served, sense=pyo.maximize)
    return m


UpTime = Callable[[int, int], Any]
"""Time that circuits of a pair of racks are up, us, as an expression of the model."""


def _longest_us(problem: Circuits, pairs: list[tuple[int, int]]) -> float:
    """Return the longest day that is of use: no day need be longer than the longest demand."""
    needs = (float(problem.bits[pair] / problem.circuit_mbps[pair]) for pair in pairs)
    return max(problem.shortest_day_us, max(needs, default=0.0))


def _add_days(m: pyo.ConcreteModel, problem: Circuits, pairs: list[tuple[int, int]], end: Any) -> UpTime:
    """Add days in any order: each permutation is one of each switch at most."""
    import pyomo.environ as pyo

    permutations = list(itertools.permutations(range(len(problem.racks))))
    night, shortest, longest = problem.night_us, problem.shortest_day_us, _longest_us(problem, pairs)
    m.M = pyo.Set(initialize=range(len(permutations)))
    m.t = pyo.Var(m.S, m.M, domain=pyo.NonNegativeReals)
    m.z = pyo.Var(m.S, m.M, domain=pyo.Binary)
    m.week = pyo.Constraint(m.S, rule=lambda m, s: sum(m.t[s, k] + night * m.z[s, k] for k in m.M) <= end)
    m.used = pyo.Constraint(m.S, m.M, rule=lambda m, s, k: m.t[s, k] <= longest * m.z[s, k])
    m.shortest = pyo.Constraint(m.S, m.M, rule=lambda m, s, k: m.t[s, k] >= shortest * m.z[s, k])
    return lambda i, j: sum(m.t[s, k] for s in m.S for k in m.M if permutations[k][i] == j)


def _count_days(problem: Circuits, pairs: list[tuple[int, int]]) -> int:
    """Return the most days of a switch in any schedule that can be the best."""
    night, shortest, whole_us = problem.night_us, problem.shortest_day_us, problem.window_us
    if whole_us is None:  # one pair after another is a schedule
        whole_us = sum(
            night + max(shortest, float(problem.bits[pair] / problem.circuit_mbps[pair])) for pair in pairs
        )
    return math.floor(whole_us / (night + shortest) * (1 + 1e-9))


def _add_days_in_order(
    m: pyo.ConcreteModel, problem: Circuits, pairs: list[tuple[int, int]], end: Any
) -> UpTime:
    """Add numbered days of each switch, between which circuits may stay up."""
    import pyomo.environ as pyo

    permutations = list(itertools.permutations(range(len(problem.racks))))
    days, night, shortest = _count_days(problem, pairs), problem.night_us, problem.shortest_day_us
    choices = problem.switches * days * len(permutations)
    if choices > MOST_CHOICES:
        raise InputError(
            f"formulation: dark is changed, and {problem.switches} x {days:,} days of {len(permutations)} "
            f"permutations are {choices:,} choices, must be at most {MOST_CHOICES:,}"
        )
    longest = _longest_us(problem, pairs)
    m.D = pyo.Set(initialize=range(days))
    m.M = pyo.Set(initialize=range(len(permutations)))
    m.t = pyo.Var(m.S, m.D, m.M, domain=pyo.NonNegativeReals)
    m.z = pyo.Var(m.S, m.D, m.M, domain=pyo.Binary)
    m.N = pyo.Set(initialize=range(max(0, days - 1)))  # nights between days
    m.k = pyo.Var(m.S, m.N, m.IJ, bounds=(0, 1))

    def is_up(s: int, d: int, i: int, j: int) -> Any:
        return sum(m.z[s, d, k] for k in m.M if permutations[k][i] == j)

    m.week = pyo.Constraint(
        m.S, rule=lambda m, s: sum(m.t[s, d, k] + night * m.z[s, d, k] for d in m.D for k in m.M) <= end
    )
    m.used = pyo.Constraint(m.S, m.D, m.M, rule=lambda m, s, d, k: m.t[s, d, k] <= longest * m.z[s, d, k])
    m.shortest = pyo.Constraint(
        m.S, m.D, m.M, rule=lambda m, s, d, k: m.t[s, d, k] >= shortest * m.z[s, d, k]
    )
    m.single = pyo.Constraint(m.S, m.D, rule=lambda m, s, d: sum(m.z[s, d, k] for k in m.M) <= 1)
    m.succession = pyo.Constraint(
        m.S, m.N, rule=lambda m, s, d: sum(m.z[s, d + 1, k] - m.z[s, d, k] for k in m.M) <= 0
    )
    m.kept = pyo.Constraint(
        m.S,
        m.N,
        m.IJ,
        range(2),
        rule=lambda m, s, d, i, j, after: m.k[s, d, i, j] <= is_up(s, d + after, i, j),
    )
    return lambda i, j: (
        sum(m.t[s, d, k] for s in m.S for d in m.D for k in m.M if permutations[k][i] == j)
        + night * sum(m.k[s, d, i, j] for s in m.S for d in m.N)
    )
