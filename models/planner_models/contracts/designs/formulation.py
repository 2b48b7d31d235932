"""The formal model of system `contracts` in Pyomo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner_models.contracts.plan.metrics import unserved_price
from planner_models.contracts.problem.problem import MEAN, Month

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Month) -> pyo.ConcreteModel:
    """Return the month as a model, with windows w, contracts c, and free windows F of each contract.

    minimize    sum_ct price_ct z_ct
    subject to  sum_c x_wc = traffic that can be carried in w     for every window and region
                x_wc <= q_c + most_wc y_wc, sum_w y_wc <= F_c     y binary; F is 0 where the peak is billed
                q_c or the mean of x_wc <= sum_t z_ct             where the mean is billed
                commitment_c <= sum_t z_ct                        z_ct: Mbit/s billed at price step t
                x_wc - x_w+1,c <= d_wc                            d: what a contract loses to the next window
                sum_c d_wc <= fall of traffic + movable traffic   where a region limits switching
                z_c,t+1 > 0 only where z_ct is full               by binaries o_ct, where prices fall
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("contracts")
    windows, count = problem.most_mbps.shape
    lower, upper, steps = problem.least_mbps, problem.most_mbps, problem.price_steps
    highest = np.maximum(upper.max(axis=0), problem.column("commitment_mbps"))
    wide = [np.diff(np.append(volumes, np.inf)) for volumes, _ in steps]
    m.W, m.C = pyo.RangeSet(0, windows - 1), pyo.RangeSet(0, count - 1)
    m.T = pyo.Set(initialize=[(c, t) for c in range(count) for t in range(len(wide[c]))])
    m.O = pyo.Set(initialize=[(c, t) for c in range(count) for t in range(len(wide[c]) - 1)])
    m.x = pyo.Var(m.W, m.C, bounds=lambda _, w, c: (float(lower[w, c]), float(upper[w, c])))
    m.q = pyo.Var(m.C, domain=pyo.NonNegativeReals)
    m.y = pyo.Var(m.W, m.C, domain=pyo.Binary)
    m.z = pyo.Var(
        m.T, bounds=lambda _, c, t: (0.0, float(min(wide[c][t], max(highest[c] - steps[c][0][t], 0.0))))
    )
    m.o = pyo.Var(m.O, domain=pyo.Binary)
    _serve_traffic(problem, m)
    _bill_volumes(problem, m)
    _limit_switching(problem, m)
    short = float((problem.traffic_mbps - problem.servable_mbps).sum()) / windows
    m.goal = pyo.Objective(
        expr=sum(float(steps[c][1][t]) * m.z[c, t] for c, t in m.T) + short * unserved_price(problem),
        sense=pyo.minimize,
    )
    return m


def _serve_traffic(problem: Month, m: pyo.ConcreteModel) -> None:
    """Add to a model that contracts carry the traffic, above their billed rate in free windows only."""
    import pyomo.environ as pyo

    upper, servable, rules = problem.most_mbps, problem.servable_mbps, problem.billing
    region = problem.region.tolist()

    def served(m: pyo.ConcreteModel, w: int, r: int) -> Any:
        loads = [m.x[w, c] for c in m.C if region[c] == r]
        return sum(loads) == float(servable[w, r]) if loads else pyo.Constraint.Skip

    def level(m: pyo.ConcreteModel, w: int, c: int) -> Any:
        return (
            pyo.Constraint.Skip if rules[c] == MEAN else m.x[w, c] <= m.q[c] + float(upper[w, c]) * m.y[w, c]
        )

    def free(m: pyo.ConcreteModel, c: int) -> Any:
        return sum(m.y[w, c] for w in m.W) <= int(problem.unbilled_windows[c])

    m.served = pyo.Constraint(m.W, range(len(problem.regions)), rule=served)
    m.level, m.free = pyo.Constraint(m.W, m.C, rule=level), pyo.Constraint(m.C, rule=free)


def _bill_volumes(problem: Month, m: pyo.ConcreteModel) -> None:
    """Add the billed volume at each price step to a model: the rate or the mean, at least the commitment."""
    import pyomo.environ as pyo

    rules, commitment = problem.billing, problem.column("commitment_mbps")
    windows = len(problem.most_mbps)

    def total(m: pyo.ConcreteModel, c: int) -> Any:
        return sum(m.z[c, t] for t in range(len(problem.price_steps[c][0])))

    def billed(m: pyo.ConcreteModel, c: int) -> Any:
        volume = sum(m.x[w, c] for w in m.W) / windows if rules[c] == MEAN else m.q[c]
        return total(m, c) >= volume

    m.billed = pyo.Constraint(m.C, rule=billed)
    m.commitment = pyo.Constraint(m.C, rule=lambda m, c: total(m, c) >= float(commitment[c]))
    m.full = pyo.Constraint(m.O, rule=lambda m, c, t: m.z[c, t] >= m.z[c, t].ub * m.o[c, t])
    m.used = pyo.Constraint(m.O, rule=lambda m, c, t: m.z[c, t + 1] <= m.z[c, t + 1].ub * m.o[c, t])


def _limit_switching(problem: Month, m: pyo.ConcreteModel) -> None:
    """Add to a model the largest traffic that contracts of a region lose to the next window."""
    import pyomo.environ as pyo

    windows = len(problem.most_mbps)
    region, servable, share = problem.region.tolist(), problem.servable_mbps, problem.moved_share
    limited = [r for r in range(len(problem.regions)) if share[r] < 1]
    m.D = pyo.Set(initialize=[(w, c) for w in range(windows - 1) for c in m.C if region[c] in limited])
    m.d = pyo.Var(m.D, domain=pyo.NonNegativeReals)
    m.lost = pyo.Constraint(m.D, rule=lambda m, w, c: m.x[w, c] - m.x[w + 1, c] <= m.d[w, c])

    def moved(m: pyo.ConcreteModel, w: int, r: int) -> Any:
        moves = [m.d[w, c] for c in m.C if region[c] == r]
        now, after = float(servable[w, r]), float(servable[w + 1, r])
        movable = max(now - after, 0.0) + float(share[r]) * min(now, after)
        return sum(moves) <= movable if moves else pyo.Constraint.Skip

    m.moved = pyo.Constraint(pyo.RangeSet(0, windows - 2), limited, rule=moved)
