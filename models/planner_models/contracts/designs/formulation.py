"""The formal model of system `contracts` in Pyomo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.arrays import Floats
from planner_models.contracts.plan.metrics import unserved_price
from planner_models.contracts.problem.bills import meter_factor
from planner_models.contracts.problem.problem import MEAN, Month

if TYPE_CHECKING:
    import pyomo.environ as pyo


def formulation(problem: Month) -> pyo.ConcreteModel:
    """Return the month as a model, with windows w, contracts c, bills b, and meters m with free windows F.

    A meter counts u_wm = sum_c k_wc x_wc of the contracts of its bill: k is 1 where traffic out is metered.

    minimize    sum_bt price_bt z_bt
    subject to  sum_c x_wc = traffic that can be carried in w     for every window and region
                u_wm <= q_m + most_wm y_wm, sum_w y_wm <= F_m     y binary; F is 0 where the peak is billed
                q_m or the mean of u_wm <= sum_t z_bt             where the mean is billed
                commitment_b <= sum_t z_bt                        z_bt: Mbit/s billed at price step t
                x_wc - x_w+1,c <= d_wc                            d: what a contract loses to the next window
                sum_c d_wc <= fall of traffic + movable traffic   where a region limits switching
                z_b,t+1 > 0 only where z_bt is full               by binaries o_bt, where prices fall
    """
    import pyomo.environ as pyo  # only needed for the formal model

    m = pyo.ConcreteModel("contracts")
    windows, count = problem.most_mbps.shape
    lower, upper, samples = problem.least_mbps, problem.most_mbps, _most_samples(problem)
    first = np.unique(problem.bill, return_index=True)[1].tolist()
    steps = [problem.price_steps[c] for c in first]
    highest = problem.column("commitment_mbps")[first]
    np.maximum.at(highest, [meter.bill for meter in problem.meters], samples.max(axis=0))
    wide = [np.diff(np.append(volumes, np.inf)) for volumes, _ in steps]
    m.W, m.C = pyo.RangeSet(0, windows - 1), pyo.RangeSet(0, count - 1)
    m.B, m.M = pyo.RangeSet(0, len(first) - 1), pyo.RangeSet(0, len(problem.meters) - 1)
    m.T = pyo.Set(initialize=[(b, t) for b in range(len(first)) for t in range(len(wide[b]))])
    m.O = pyo.Set(initialize=[(b, t) for b in range(len(first)) for t in range(len(wide[b]) - 1)])
    m.x = pyo.Var(m.W, m.C, bounds=lambda _, w, c: (float(lower[w, c]), float(upper[w, c])))
    m.q = pyo.Var(m.M, domain=pyo.NonNegativeReals)
    m.y = pyo.Var(m.W, m.M, domain=pyo.Binary)
    m.z = pyo.Var(
        m.T, bounds=lambda _, b, t: (0.0, float(min(wide[b][t], max(highest[b] - steps[b][0][t], 0.0))))
    )
    m.o = pyo.Var(m.O, domain=pyo.Binary)
    _serve_traffic(problem, m)
    _bill_volumes(problem, m)
    _limit_switching(problem, m)
    short = float((problem.traffic_mbps - problem.servable_mbps).sum()) / windows
    m.goal = pyo.Objective(
        expr=sum(float(steps[b][1][t]) * m.z[b, t] for b, t in m.T) + short * unserved_price(problem),
        sense=pyo.minimize,
    )
    return m


def _factors(problem: Month) -> list[dict[int, Floats]]:
    """Return the metered traffic of a Mbit/s out, for each meter and contract of its bill, (W,) each."""
    return [
        {
            c: meter_factor(problem, meter.kind)[:, problem.region[c]]
            for c in np.flatnonzero(problem.bill == meter.bill).tolist()
        }
        for meter in problem.meters
    ]


def _most_samples(problem: Month) -> Floats:
    """Return the most that each meter may count in a window, (W, M)."""
    upper = problem.most_mbps
    counted = [sum(factor * upper[:, c] for c, factor in factors.items()) for factors in _factors(problem)]
    return np.array(counted).reshape(len(counted), len(upper)).T


def _serve_traffic(problem: Month, m: pyo.ConcreteModel) -> None:
    """Add to a model that contracts carry the traffic, above their billed rate in free windows only."""
    import pyomo.environ as pyo

    servable, region = problem.servable_mbps, problem.region.tolist()
    limit, factors = _most_samples(problem), _factors(problem)
    head = [int(np.argmax(problem.bill == meter.bill)) for meter in problem.meters]

    def served(m: pyo.ConcreteModel, w: int, r: int) -> Any:
        loads = [m.x[w, c] for c in m.C if region[c] == r]
        return sum(loads) == float(servable[w, r]) if loads else pyo.Constraint.Skip

    def level(m: pyo.ConcreteModel, w: int, k: int) -> Any:
        if problem.billing[head[k]] == MEAN:
            return pyo.Constraint.Skip
        sample = sum(float(factor[w]) * m.x[w, c] for c, factor in factors[k].items())
        return sample <= m.q[k] + float(limit[w, k]) * m.y[w, k]

    def free(m: pyo.ConcreteModel, k: int) -> Any:
        return sum(m.y[w, k] for w in m.W) <= int(problem.unbilled_windows[head[k]])

    m.served = pyo.Constraint(m.W, range(len(problem.regions)), rule=served)
    m.level, m.free = pyo.Constraint(m.W, m.M, rule=level), pyo.Constraint(m.M, rule=free)


def _bill_volumes(problem: Month, m: pyo.ConcreteModel) -> None:
    """Add the billed volume at each price step to a model: the rate or the mean, at least the commitment."""
    import pyomo.environ as pyo

    head = np.unique(problem.bill, return_index=True)[1].tolist()
    commitment, factors = problem.column("commitment_mbps"), _factors(problem)
    windows = len(problem.most_mbps)

    def total(m: pyo.ConcreteModel, b: int) -> Any:
        return sum(m.z[b, t] for t in range(len(problem.price_steps[head[b]][0])))

    def billed(m: pyo.ConcreteModel, k: int) -> Any:
        bill = problem.meters[k].bill
        if problem.billing[head[bill]] != MEAN:
            return total(m, bill) >= m.q[k]
        counted = sum(float(factor[w]) * m.x[w, c] for c, factor in factors[k].items() for w in m.W)
        return total(m, bill) >= counted / windows

    m.billed = pyo.Constraint(m.M, rule=billed)
    m.commitment = pyo.Constraint(m.B, rule=lambda m, b: total(m, b) >= float(commitment[head[b]]))
    m.full = pyo.Constraint(m.O, rule=lambda m, b, t: m.z[b, t] >= m.z[b, t].ub * m.o[b, t])
    m.used = pyo.Constraint(m.O, rule=lambda m, b, t: m.z[b, t + 1] <= m.z[b, t + 1].ub * m.o[b, t])


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
