"""The linear program of `two_hop` with names, for constraints and objectives of the user."""

from __future__ import annotations

from typing import Final

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
from planner_models.rotors.problem.problem import RotorNetwork

SCOPE: Final = f"{ROTATION_SCOPE}, direct or by one other rack"
DIRECT: Final = ""
"""Rack in between of a direct path."""


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
