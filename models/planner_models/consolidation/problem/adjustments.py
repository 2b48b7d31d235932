"""Adjustments that apply to every problem of system `consolidation`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.errors import InputError, did_you_mean
from planner_models.consolidation.problem.arrivals import after_events
from planner_models.consolidation.problem.problem import Consolidation

Factor = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


def adjust(
    problem: Consolidation,
    *,
    scale: Annotated[Positive, Field(description="numbers of machines times this, rounded up")] = 1.0,
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
    resources: Annotated[Positive, Field(description="other resources of hosts times this")] = 1.0,
    split: Annotated[
        str | None,
        Field(pattern="^(never|even|any)$", description="split of all machines; default: as in the table"),
    ] = None,
    most: Annotated[
        float | None, Field(ge=0, le=1e7, description="hosts of each type; default: as in the tables")
    ] = None,
    span_loss: Annotated[
        float | None,
        Field(ge=0, le=1, description="share of throughput lost by each more node; default: as in the table"),
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
    changed = _multiply_resources(changed, resources)
    changed = _change_hosts(changed, price_factors, most)
    if span_loss is not None:
        changed = _with_span_loss(changed, span_loss)
    changed = replace(changed, rules=None) if without_rules else changed
    changed = replace(changed, survive=None) if without_losses else changed
    return _lose(changed, lost) if lost else changed


def _multiply_resources(problem: Consolidation, factor: float) -> Consolidation:
    """Return the problem with other amounts of resources besides threads and memory."""
    if factor == 1 or problem.capacities is None:
        return problem
    return replace(
        problem, capacities=problem.capacities.assign(amount=problem.capacities["amount"] * factor)
    )


def _change_hosts(
    problem: Consolidation, price_factors: dict[str, float], most: float | None
) -> Consolidation:
    """Return the problem with other prices of host types, and another number of hosts of each."""
    hosts = problem.hosts
    if price_factors:
        hosts = hosts.assign(
            price_per_h=problem.price * _factors(problem, price_factors, "price_factors", 1.0)
        )
    if most is not None:
        hosts = hosts.assign(most=most)
    return problem if hosts is problem.hosts else replace(problem, hosts=hosts)


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
    _require_domains(problem, lost)
    changed = problem
    if problem.present is not None and len(problem.present):
        changed = replace(changed, present=_drain(problem.present, lost))
    if problem.zones is not None and len(problem.zones):
        limit = _hosts_of_zones(problem, problem.zones, lost)
        if limit is not None:
            changed = replace(changed, zones=problem.zones.assign(most=limit))
    return changed


def _require_domains(problem: Consolidation, lost: tuple[str, ...]) -> None:
    """Raise InputError for names that are no zone, rack or host."""
    hosts = [] if problem.present is None else problem.present["host"].astype(str).tolist()
    names = {
        *(name for name in problem.zone_names if name),
        *(supply.rack for supply in problem.supplies if supply.rack),
        *hosts,
    }
    faults = [
        f"lost: '{name}' is no zone, rack or host" + did_you_mean(name, sorted(names))
        for name in lost
        if name not in names
    ]
    if faults:
        raise InputError(*faults)


def _drain(present: pd.DataFrame, lost: tuple[str, ...]) -> pd.DataFrame:
    """Return the present hosts, those in lost domains drained."""
    gone = np.zeros(len(present), dtype=bool)
    for column in ("host", "rack", "zone"):
        if column in present:
            gone |= present[column].astype(str).isin(lost).to_numpy()
    return present.assign(drain=np.where(gone, 1.0, present["drain"].to_numpy(float)))


def _hosts_of_zones(problem: Consolidation, zones: pd.DataFrame, lost: tuple[str, ...]) -> Floats | None:
    """Return the hosts of zones without lost racks, nan for no limit; None where nothing is lost."""
    names, racks = zones["zone"].astype(str), zones["racks"].to_numpy(float)
    gone = names.isin(lost).to_numpy()
    share = np.array(
        [
            sum(f"{zone} rack {number + 1}" in lost for number in range(int(count))) / count
            for zone, count in zip(names, racks, strict=True)
        ]
    )
    if not gone.any() and not (share > 0).any():
        return None
    limit = np.where(gone, 0.0, problem.zone_most)
    limit = np.where(share > 0, np.floor(limit * (1 - share)), limit)
    return np.where(np.isfinite(limit), limit, np.nan)
