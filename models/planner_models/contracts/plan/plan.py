"""The plan of system `contracts`: the traffic of each contract in each window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.table import MAX_WINDOW, Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError, PlanRejected
from planner_models.contracts.problem.problem import MOST_MBPS, Month

LOADS: Final = Table(
    name="loads",
    about="traffic that a CDN carries for a region in a window",
    columns={
        "window": number("number of the window", at_least=0, at_most=MAX_WINDOW, whole=True),
        "cdn": label("CDN"),
        "region": label("region of the clients"),
        "load_mbps": number("traffic that it carries, Mbit/s", at_least=0, at_most=MOST_MBPS),
    },
    key=("window", "cdn", "region"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (LOADS,)


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """Traffic of contracts by window.

    loads  window, cdn, region, load_mbps; windows without a row of a contract have no traffic there
    """

    loads: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return {"loads": self.loads}


def make_plan(problem: Month, load_mbps: Floats) -> Loads:
    """Return the plan of (W, N) loads."""
    window, contract = np.nonzero(load_mbps > 0)
    names = [problem.contracts[name].astype(str).to_numpy(object) for name in ("cdn", "region")]
    return Loads(
        loads=pd.DataFrame(
            {
                "window": problem.window_numbers[window],
                "cdn": names[0][contract],
                "region": names[1][contract],
                "load_mbps": load_mbps[window, contract],
            }
        )
    )


def from_tables(problem: Month, tables: Mapping[str, pd.DataFrame]) -> Loads:
    """Return the plan in its table.

    raises  InputError with every fault; PlanRejected for contracts and windows that there are none of
    """
    if "loads" not in tables:
        raise InputError("loads: is missing")
    frame = tables["loads"]
    plan = Loads(loads=validate(LOADS, frame, where=frame.attrs.get("where")))
    read_loads(problem, plan)
    return plan


def read_loads(problem: Month, plan: Loads) -> Floats:
    """Return the (W, N) loads of a plan; raises PlanRejected for a contract or a window that is none."""
    frame = plan.loads
    contract = problem.find_contracts(frame)
    if (contract < 0).any():
        row = int(np.argmax(contract < 0))
        raise PlanRejected(
            f"loads row {row + 1}: there is no contract of cdn '{frame['cdn'].iloc[row]}' in region "
            f"'{frame['region'].iloc[row]}'"
        )
    window = frame["window"].to_numpy(float)
    amount = frame["load_mbps"].to_numpy(float)
    numbers = problem.window_numbers
    position = np.minimum(np.searchsorted(numbers, window), len(numbers) - 1)
    unknown = numbers[position] != window
    if unknown.any():
        row = int(np.argmax(unknown))
        raise PlanRejected(
            f"loads row {row + 1}: there is no window {window[row]:.15g} in traffic; they are "
            f"{numbers[0]:.15g} to {numbers[-1]:.15g}"
        )
    if not (np.isfinite(amount) & (amount >= 0)).all():
        raise PlanRejected("loads: load_mbps must be a finite number and at least 0")
    load = np.zeros((problem.windows, len(problem.names)))
    np.add.at(load, (position, contract), amount)
    return load
