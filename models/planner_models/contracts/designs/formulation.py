"""Formal models of system `contracts`: in Pyomo, and as a program open to constraints of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.backends.completion import complete
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.contract.open_model import Goal, OpenModel
from planner.errors import InputError, did_you_mean
from planner.options import Options, Service
from planner_models.contracts.designs import optimum, program
from planner_models.contracts.designs.program import MonthProgram, Region
from planner_models.contracts.designs.rules import prove_shortage
from planner_models.contracts.plan.metrics import unserved_price
from planner_models.contracts.plan.plan import Loads, make_plan, read_loads
from planner_models.contracts.problem.bills import meter_factor
from planner_models.contracts.problem.problem import MEAN, Month

if TYPE_CHECKING:
    import pyomo.environ as pyo


FOLLOWS: Final = frozenset(
    {"level", program.PRICE_STEPS, "excess", "step order", "free window", "lost traffic"}
)
"""Blocks that follow from the loads: a row of a user on them changes what the objective says of a plan."""
TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none: many months of a few thousand free windows are not proven sooner."""
LOAD: Final = "load"
Regions = Mapping[str, tuple[Region, MonthProgram]]


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


def open_model(problem: Month, *, service: Service = "best") -> OpenModel[Loads]:
    """Return the exact integer program of all regions, open to changes.

    Variables, with the columns of their members:

    load         Mbit/s of a contract in a window (window, cdn, region)
    level        Mbit/s up to which the windows of a contract are billed (cdn, region)
    price step   Mbit/s bought at a price (cdn, region, price)
    free window  1 where a window of a contract is not billed (window, cdn, region)

    Constraints: served, billed level, free windows, chosen windows, chosen count, volume, commitment, and the
    limits of switching. It has an integer variable for each window of each contract with free windows. The
    search starts from the plan of the design `optimum`, and ends at its gap, 0.1%, or after 10 s. With 506
    such variables (contracts/own_data) the least bill takes 1 s of CPU after that plan; plans in other aims
    end at the limit, with a bound.

    raises  InputError where no region has a contract, and with service "all" where some traffic cannot be
            carried
    """
    optimum.require_contracts(problem)
    if not all(map(problem.is_plain, problem.parts)):
        raise InputError(
            "contracts: programs of your own need a bill for each contract and traffic that is metered out; "
            "columns bill and metered say otherwise"
        )
    shortage = prove_shortage(problem, Options(service=service))
    if shortage is not None:
        raise InputError(*shortage.reasons)
    regions = optimum.build_exactly(problem)
    merged = LinearProgram.merge(
        {name: built.program for name, (_, built) in regions.items()}, name="contracts", first=LOAD
    )
    merged = optimum.describe(problem, merged)

    def read(x: Floats) -> Loads:
        return make_plan(problem, _read_loads(problem, regions, merged.values(LOAD, x)))

    @cache
    def start(options: Options) -> Floats | None:
        decision = optimum.plan(problem, options=options)
        if decision.plan is None:
            return None
        return complete(merged, {LOAD: _list_loads(regions, read_loads(problem, decision.plan))}, options)

    return OpenModel(
        program=merged,
        read=read,
        members=_list_members(problem, regions),
        goals=_make_goals(problem, regions),
        follows=FOLLOWS,
        start=start,
        options={"gap": optimum.DEFAULT_GAP, "time_limit_s": TIME_LIMIT_S},
    )


def _read_loads(problem: Month, regions: Regions, values: Floats) -> Floats:
    """Return the loads (W, N) of values of the variables `load`, region by region."""
    load = np.zeros((problem.windows, len(problem.names)))
    begin = 0
    for region, _ in regions.values():
        end = begin + region.most.size
        load[:, region.contracts] = program.repair(region, values[begin:end].reshape(region.most.shape))
        begin = end
    return load


def _list_loads(regions: Regions, load: Floats) -> Floats:
    """Return the values of the variables `load`, region by region, of loads (W, N)."""
    return np.concatenate([load[:, region.contracts].reshape(-1) for region, _ in regions.values()])


def _list_members(problem: Month, regions: Regions) -> dict[str, Callable[[], pd.DataFrame]]:
    """Return the tables of members of each block of variables."""
    names = pd.unique(problem.contracts["cdn"].astype(str))
    contract = problem.contracts["cdn"].astype(str).to_numpy(object)

    def describe(name: str, columns: Ints, **others: object) -> pd.DataFrame:
        return pd.DataFrame({**others, "cdn": contract[columns], "region": name})

    def list_by_window(name: str, columns: Ints) -> pd.DataFrame:
        windows = np.repeat(problem.window_numbers.astype(np.int64), len(columns))
        return describe(name, np.tile(columns, problem.windows), window=windows)

    def join(make: Callable[[str, Region, MonthProgram], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
        def join_regions() -> pd.DataFrame:
            frames = [make(name, region, built) for name, (region, built) in regions.items()]
            frame = pd.concat(frames, ignore_index=True)
            return frame.assign(
                cdn=pd.Categorical(frame["cdn"], categories=names),
                region=pd.Categorical(frame["region"], categories=list(map(str, problem.regions))),
            )

        return join_regions

    return {
        LOAD: join(lambda name, region, _: list_by_window(name, region.contracts)),
        "free window": join(lambda name, region, _: list_by_window(name, region.contracts[region.free > 0])),
        "level": join(lambda name, region, _: describe(name, region.contracts)),
        program.PRICE_STEPS: join(
            lambda name, region, built: describe(
                name,
                region.contracts[built.price_contracts],
                price=np.concatenate([prices for _, prices in region.steps]),
            )
        ),
    }


def _make_goals(problem: Month, regions: Regions) -> dict[str, Goal]:
    """Return the aims by which plans near the least bill may differ."""
    contract = np.concatenate([np.tile(region.contracts, problem.windows) for region, _ in regions.values()])
    largest = np.concatenate([region.most.reshape(-1) for region, _ in regions.values()])

    def use_fewest(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        used = m.variables(
            "used", len(problem.names), upper=1.0, integer=True, labels=lambda: list(problem.names)
        )
        m.constrain("load of used", m[LOAD] - largest * used[contract], upper=0.0)
        return used.sum()

    def use_least(m: ProgramBuilder, cdn: str, _optimum: Floats) -> Expression:
        names = problem.contracts["cdn"].astype(str).to_numpy(object)
        if cdn not in names:
            raise InputError(f"least_with: '{cdn}' is no CDN{did_you_mean(cdn, list(names))}")
        mean: Expression = m[LOAD][np.flatnonzero(names[contract] == cdn)].sum() * (1 / problem.windows)
        return mean

    def move_least(m: ProgramBuilder, _value: str, _optimum: Floats) -> Expression:
        return _move_least(m, problem, regions)

    goals = {
        "fewest_contracts": Goal(about="contracts that carry traffic", build=use_fewest),
        "least_with": Goal(
            about="mean traffic that a CDN carries", unit="Mbit/s", build=use_least, value="CDN"
        ),
    }
    if problem.windows > 1:
        goals["least_moved"] = Goal(
            about="traffic that changes its CDN from a window to the next, mean",
            unit="Mbit/s",
            build=move_least,
        )
    return goals


def _move_least(m: ProgramBuilder, problem: Month, regions: Regions) -> Expression:
    """Return the mean traffic that contracts lose to others from a window to the next, Mbit/s."""
    amounts, begin, pairs = [], 0, problem.windows - 1
    for name, (region, _) in regions.items():
        end = begin + region.most.size
        load = m[LOAD][begin:end].reshape(*region.most.shape)
        lost = m.variables(f"lost {name}", (pairs, region.most.shape[1]))
        moved = m.variables(f"moved {name}", pairs)
        fall = np.maximum(region.traffic[:-1] - region.traffic[1:], 0.0)
        m.constrain(f"lost {name}", load[:-1] - load[1:] - lost, upper=0.0)
        m.constrain(f"moved {name}", lost.sum(axis=1) - moved, upper=fall)
        amounts.append(moved.sum())
        begin = end
    total: Expression = sum(amounts[1:], amounts[0]) * (1 / pairs)
    return total
