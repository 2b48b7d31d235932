"""Address distribution on any multi-rooted tree: an exact assignment by constraint programming."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.contract.studies import Section
from planner.errors import InputError
from planner_models.multicast.problem.topology import Distribution, Wiring

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

MAX_DETERMINISTIC_TIME = 60.0  # of the solver: about as many seconds


def allocate_addresses(
    wiring: Wiring, *, partitions: int, core_copies: int, aggregation_copies: int
) -> Distribution:
    """Return partitions of a tree, each at exactly so many cores and aggregation switches of each pod.

    Switches of a layer (of a pod) hold equal shares, up to one partition where they do not divide. A core
    reaches every pod through a switch that holds its partitions, and each such switch has such a core above.

    raises  InputError where no distribution exists, or none was found with a fixed effort
    source  section 3.1.2, whose common steps are the constraints here
    """
    faults = _find_count_faults(wiring, partitions, core_copies, aggregation_copies)
    if faults:
        raise InputError(*faults)
    from ortools.sat.python import cp_model  # deferred: imports the solver

    rows = len(wiring.cores) + len(wiring.aggregations)
    model = cp_model.CpModel()
    has_cores = len(wiring.cores) > 0
    variables = [
        [model.new_bool_var(f"{row} {partition}") for partition in range(partitions)] for row in range(rows)
    ]
    core, aggregation = variables[: len(wiring.cores)], variables[len(wiring.cores) :]
    if has_cores:
        _add_equal_shares(model, core, core_copies)
    for pod in range(wiring.pods):
        here = np.flatnonzero(wiring.aggregation_pod == pod).tolist()
        _add_equal_shares(model, [aggregation[switch] for switch in here], aggregation_copies)
    if has_cores:
        _add_reachability(model, wiring, core, aggregation)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    solver.parameters.linearization_level = 0  # a feasibility search: relaxations only slow it down
    solver.parameters.max_deterministic_time = MAX_DETERMINISTIC_TIME
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        outcome = "there is none" if status == cp_model.INFEASIBLE else "none was found"
        raise InputError(
            f"fabric: {partitions} partitions at {core_copies} cores and {aggregation_copies} aggregation "
            f"switches of each pod, in equal shares and within reach of every pod: {outcome}"
        )
    held = np.array([[solver.boolean_value(variable) for variable in row] for row in variables], dtype=bool)
    held = held.reshape(rows, partitions)
    return Distribution(core=held[: len(core)], aggregation=held[len(core) :])


def _add_equal_shares(
    model: cp_model.CpModel, rows: Sequence[Sequence[cp_model.IntVar]], copies: int
) -> None:
    """Require each partition at `copies` of the rows, and equally many partitions at each row."""
    partitions = len(rows[0])
    for partition in range(partitions):
        model.add(sum(row[partition] for row in rows) == copies)
    share, remainder = divmod(partitions * copies, len(rows))
    for row in rows:
        model.add_linear_constraint(sum(row), share, share + (remainder > 0))


def _add_reachability(
    model: cp_model.CpModel,
    wiring: Wiring,
    core: Sequence[Sequence[cp_model.IntVar]],
    aggregation: Sequence[Sequence[cp_model.IntVar]],
) -> None:
    """Require a way from each core of a partition into every pod, and from each switch of it up to a core."""
    for c, of_core in enumerate(core):
        for pod in range(wiring.pods):
            below = np.flatnonzero(wiring.up[:, c] & (wiring.aggregation_pod == pod)).tolist()
            for partition, held in enumerate(of_core):
                model.add_bool_or([aggregation[a][partition] for a in below]).only_enforce_if(held)
    for a, of_switch in enumerate(aggregation):
        above = np.flatnonzero(wiring.up[a]).tolist()
        for partition, held in enumerate(of_switch):
            model.add_bool_or([core[c][partition] for c in above]).only_enforce_if(held)


def _find_count_faults(
    wiring: Wiring, partitions: int, core_copies: int, aggregation_copies: int
) -> list[str]:
    """Return the faults that need no search: more copies than switches, a core without a link to a pod."""
    faults = []
    if core_copies > len(wiring.cores) > 0:
        faults.append(f"fabric: core_copies is {core_copies}, there are {len(wiring.cores)} cores")
    smallest = int(np.bincount(wiring.aggregation_pod).min())
    if aggregation_copies > smallest:
        faults.append(
            f"fabric: aggregation_copies is {aggregation_copies}, a pod has {smallest} aggregation switches"
        )
    for core, name in enumerate(wiring.cores):
        met = np.bincount(wiring.aggregation_pod[wiring.up[:, core]], minlength=wiring.pods)
        if not met.all() and partitions * core_copies >= len(wiring.cores):  # every core holds a partition
            faults.append(f"links: core '{name}' has no link to pod {int(np.argmin(met))}")
            break
    return faults


def find_unreachable_partitions(wiring: Wiring, distribution: Distribution) -> list[str]:
    """Return partitions that cannot be served as they are held, at most five lines."""
    if not len(wiring.cores):
        unheld = np.flatnonzero(~distribution.aggregation.any(axis=0)).tolist()
        return [f"holds: partition {partition} is at no spine" for partition in unheld][:5]
    faults = []
    for partition in range(distribution.partitions):
        cores = np.flatnonzero(distribution.core[:, partition])
        if not len(cores):
            faults.append(f"holds: partition {partition} is at no core")
            continue
        held = distribution.aggregation[:, partition]
        for core in cores.tolist():
            met = np.bincount(wiring.aggregation_pod[wiring.up[:, core] & held], minlength=wiring.pods)
            if not met.all():
                faults.append(
                    f"holds: partition {partition} of core '{wiring.cores[core]}' does not reach pod "
                    f"{int(np.argmin(met))}: no switch there below the core holds it"
                )
                break
        if not faults and (idle := held & ~wiring.up[:, cores].any(axis=1)).any():
            name = wiring.aggregations[int(np.argmax(idle))]
            faults.append(f"holds: partition {partition} is at '{name}', but at no core above it")
    return faults[:5]


def describe_allocation(wiring: Wiring, distribution: Distribution, *, rows: int) -> Section:
    """Return the first `rows` switches with the partitions they hold, as a section of an explanation."""
    held = np.vstack([distribution.core, distribution.aggregation])
    frame = pd.DataFrame(
        {
            "switch": wiring.above[:rows],
            "layer": wiring.layers[: len(held)][:rows],
            "parts": [", ".join(map(str, np.flatnonzero(row).tolist())) for row in held[:rows]],
        }
    )
    note = f"the first {rows} of {len(held)} switches" if len(held) > rows else ""
    return Section(title="parts of the addresses that switches hold", frame=frame, note=note)
