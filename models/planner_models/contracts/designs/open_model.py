"""The exact integer program of a month with names, for constraints and objectives of the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

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
from planner_models.contracts.plan.plan import Loads, make_plan, read_loads
from planner_models.contracts.problem.problem import Month

FOLLOWS: Final = frozenset(
    {"level", program.PRICE_STEPS, "excess", "step order", "free window", "lost traffic"}
)
"""Blocks that follow from the loads: a row of a user on them changes what the objective says of a plan."""
TIME_LIMIT_S: Final = 10.0
"""Time limit where the user names none: many months of a few thousand free windows are not proven sooner."""
LOAD: Final = "load"

Regions = Mapping[str, tuple[Region, MonthProgram]]


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
