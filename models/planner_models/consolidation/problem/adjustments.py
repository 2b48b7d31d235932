"""Adjustments that apply to every problem of system `consolidation`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner_models.consolidation.problem.arrivals import after_events
from planner_models.consolidation.problem.problem import Consolidation

Factor = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


def adjust(
    problem: Consolidation,
    *,
    scale: Annotated[
        Positive, Field(description="numbers of machines are multiplied by this, rounded up")
    ] = 1.0,
    lost: Annotated[tuple[str, ...], Field(description="zones, racks and present hosts that are lost")] = (),
    price_factors: Annotated[
        dict[str, Factor], Field(description="host types, and what their price is multiplied by")
    ] = {},  # noqa: B006 - never changed
    memory_factors: Annotated[
        dict[str, Positive], Field(description="host types, and what their memory is multiplied by")
    ] = {},  # noqa: B006 - never changed
    thread_factors: Annotated[
        dict[str, Positive], Field(description="host types, and what their threads are multiplied by")
    ] = {},  # noqa: B006 - never changed
    memory: Annotated[Positive, Field(description="memory of all hosts is multiplied by this")] = 1.0,
    threads: Annotated[Positive, Field(description="threads of all hosts are multiplied by this")] = 1.0,
    resources: Annotated[
        Positive, Field(description="other resources of all hosts are multiplied by this")
    ] = 1.0,
    split: Annotated[
        str | None,
        Field(pattern="^(never|even|any)$", description="split of all machines; default: as in the table"),
    ] = None,
    most: Annotated[
        float | None, Field(ge=0, le=1e7, description="hosts of each type; default: as in the tables")
    ] = None,
    span_loss: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="share of the throughput that each further node costs; default: as in the table",
        ),
    ] = None,
    at_s: Annotated[
        float | None,
        Field(ge=0, le=1e9, description="time up to which events have happened, s; default: none have"),
    ] = None,
    without_rules: Annotated[bool, Field(description="whether rules are left out")] = False,
    without_losses: Annotated[bool, Field(description="whether no loss need be survived")] = False,
) -> Consolidation:
    """Return the problem with other machines, hosts, prices or losses.

    raises  InputError for names that are no host type, zone, rack or host
    """
    changed = _change_machines(problem if at_s is None else after_events(problem, at_s), scale, split)
    changed = _multiply_nodes(changed, "memory_gb", memory, memory_factors, "memory_factors")
    changed = _multiply_nodes(changed, "threads", threads, thread_factors, "thread_factors")
    if resources != 1 and changed.capacities is not None:
        amount = changed.capacities["amount"] * resources
        changed = replace(changed, capacities=changed.capacities.assign(amount=amount))
    if price_factors:
        price = changed.price * _factors(changed, price_factors, "price_factors", 1.0)
        changed = replace(changed, hosts=changed.hosts.assign(price_per_h=price))
    if most is not None:
        changed = replace(changed, hosts=changed.hosts.assign(most=most))
    if span_loss is not None:
        changed = _with_span_loss(changed, span_loss)
    if without_rules:
        changed = replace(changed, rules=None)
    if without_losses:
        changed = replace(changed, survive=None)
    return _lose(changed, lost) if lost else changed


def _change_machines(problem: Consolidation, scale: float, split: str | None) -> Consolidation:
    """Return the problem with other numbers of machines, and another split of all."""
    machines = problem.machines
    if scale != 1:
        machines = machines.assign(count=np.ceil(problem.count * scale - 1e-9))
    if split is not None:
        machines = machines.assign(split=split)
    return problem if machines is problem.machines else replace(problem, machines=machines)


def _with_span_loss(problem: Consolidation, span_loss: float) -> Consolidation:
    effects = pd.DataFrame({"host_type": ["*"], "span_loss": [span_loss], "scaling": [1.0]})
    if problem.effects is not None and len(problem.effects):
        effects = problem.effects.assign(span_loss=span_loss)
    return replace(problem, effects=effects)


def _factors(problem: Consolidation, factors: dict[str, float], parameter: str, common: float) -> np.ndarray:
    """Return the factor of each host type; raise InputError for names that are none."""
    faults = [
        f"{parameter}: '{name}' is no host type" + did_you_mean(name, problem.type_index)
        for name in factors
        if name not in problem.type_index
    ]
    if faults:
        raise InputError(*faults)
    return np.array([common * factors.get(name, 1.0) for name in problem.type_index])


def _multiply_nodes(
    problem: Consolidation, column: str, common: float, factors: dict[str, float], parameter: str
) -> Consolidation:
    if common == 1 and not factors:
        return problem
    factor = _factors(problem, factors, parameter, common)[problem.node_type]
    return replace(problem, nodes=problem.nodes.assign(**{column: problem.nodes[column] * factor}))


def _lose(problem: Consolidation, lost: tuple[str, ...]) -> Consolidation:
    """Return the problem without zones, racks and hosts."""
    present = problem.present if problem.present is not None else pd.DataFrame({"host": []})
    names = {
        *(name for name in problem.zone_names if name),
        *(supply.rack for supply in problem.supplies if supply.rack),
        *present["host"].astype(str),
    }
    faults = [
        f"lost: '{name}' is no zone, rack or host" + did_you_mean(name, sorted(names))
        for name in lost
        if name not in names
    ]
    if faults:
        raise InputError(*faults)
    changed = problem
    if len(present):
        gone = np.zeros(len(present), dtype=bool)
        for column in ("host", "rack", "zone"):
            if column in present:
                gone |= present[column].astype(str).isin(lost).to_numpy()
        drain = np.where(gone, 1.0, present["drain"].to_numpy(float))
        changed = replace(changed, present=present.assign(drain=drain))
    if problem.zones is not None and len(problem.zones):
        gone = problem.zones["zone"].astype(str).isin(lost).to_numpy()
        racks = problem.zones["racks"].to_numpy(float)
        limit = np.where(gone, 0.0, problem.zone_most)
        share = np.array(
            [sum(f"{zone} rack {number + 1}" in lost for number in range(int(count))) / count
             for zone, count in zip(problem.zones["zone"].astype(str), racks, strict=True)]
        )  # fmt: skip
        limit = np.where(share > 0, np.floor(limit * (1 - share)), limit)
        values = np.where(np.isfinite(limit), limit, np.nan)
        if gone.any() or (share > 0).any():
            changed = replace(changed, zones=problem.zones.assign(most=values))
    return changed
