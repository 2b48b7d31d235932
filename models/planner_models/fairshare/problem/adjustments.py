"""Adjustments that apply to every problem of system `fairshare`, whatever its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner_models.fairshare.problem.problem import SharedStore

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Factors on demand, rates and memory, other weights, and failed nodes."""

    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every demand is multiplied by this")
    ] = 1.0
    rate_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every node's rate is multiplied by this")
    ] = 1.0
    memory_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every node's memory is multiplied by this")
    ] = 1.0
    weights: Annotated[
        dict[str, Positive], Field(description="tenants, and weights that replace those of the table")
    ] = field(default_factory=dict)
    weight_factors: Annotated[
        dict[str, Positive], Field(description="tenants, and what their weights are multiplied by")
    ] = field(default_factory=dict)
    group_weights: Annotated[
        dict[str, Positive], Field(description="groups, and weights that replace those of the table")
    ] = field(default_factory=dict)
    demand_factors: Annotated[
        dict[str, Factor], Field(description="tenants, and what their demands are multiplied by")
    ] = field(default_factory=dict)
    rate_factors: Annotated[
        dict[str, Positive], Field(description="nodes, and what their rates are multiplied by")
    ] = field(default_factory=dict)
    memory_factors: Annotated[
        dict[str, Positive], Field(description="nodes, and what their memory is multiplied by")
    ] = field(default_factory=dict)
    fail_nodes: Annotated[
        tuple[str, ...], Field(description="nodes, or domains of nodes, that do not work")
    ] = ()


@spread(adjustments=Adjustments())
def adjust(problem: SharedStore, *, adjustments: Adjustments) -> SharedStore:
    """Return the problem with other demands, weights, rates, memory or nodes.

    raises  InputError for a name that is no tenant's, node's or domain's
    """
    tenants, nodes = set(problem.tenant_names.tolist()), set(problem.node_names.tolist())
    _require("weights", adjustments.weights, tenants, "tenant")
    _require("weight_factors", adjustments.weight_factors, tenants, "tenant")
    _require("group_weights", adjustments.group_weights, set(problem.group_names.tolist()), "group")
    _require("demand_factors", adjustments.demand_factors, tenants, "tenant")
    _require("rate_factors", adjustments.rate_factors, nodes, "node")
    _require("memory_factors", adjustments.memory_factors, nodes, "node")
    _require("fail_nodes", adjustments.fail_nodes, nodes | _list_domains(problem), "node")
    changed = problem
    if adjustments.scale != 1 or adjustments.demand_factors:
        changed = _scale_demand(problem, adjustments.scale, adjustments.demand_factors)
    if adjustments.weights or adjustments.weight_factors:
        weight = [
            adjustments.weights.get(name, old) * adjustments.weight_factors.get(name, 1.0)
            for name, old in zip(problem.tenant_names, problem.weight, strict=True)
        ]
        changed = changed.with_tenants(weight=np.array(weight, dtype=float))
    if adjustments.group_weights:
        changed = changed.with_groups(
            weight=[
                adjustments.group_weights.get(name, old)
                for name, old in zip(problem.group_names, problem.weight_of_group, strict=True)
            ]
        )
    if adjustments.rate_scale != 1 or adjustments.rate_factors:
        faster = _find_factors(problem.node_names, adjustments.rate_factors) * adjustments.rate_scale
        rates = [name for name in ("rate_kops", "read_kops", "write_kops") if name in changed.nodes]
        changed = changed.with_nodes(**{name: changed.nodes[name] * faster for name in rates})
    if adjustments.memory_scale != 1 or adjustments.memory_factors:
        larger = _find_factors(problem.node_names, adjustments.memory_factors) * adjustments.memory_scale
        changed = changed.with_nodes(memory_gb=changed.nodes["memory_gb"] * larger)
    return _fail_nodes(changed, adjustments.fail_nodes) if adjustments.fail_nodes else changed


def _find_factors(names: Iterable[str], factors: Mapping[str, float]) -> Floats:
    """Return the factor of each name, 1 where there is none."""
    return np.array([factors.get(name, 1.0) for name in names])


def _list_domains(problem: SharedStore) -> set[str]:
    """Return the names of domains of nodes."""
    if "domain" not in problem.nodes:
        return set()
    return set(problem.nodes["domain"].dropna().astype(str)) - {""}


def _scale_demand(problem: SharedStore, scale: float, factors: Mapping[str, float]) -> SharedStore:
    """Return the problem with other demand of tenants, now and in events."""
    factor = _find_factors(problem.tenant_names, factors)
    changed = problem.with_demand(problem.demand_kops * scale * factor[problem.tenant])
    if problem.events is None:
        return changed
    each = scale * _find_factors(problem.events["tenant"].astype(str), factors)
    return changed.with_events(problem.events.assign(demand_kops=problem.events["demand_kops"] * each))


def _fail_nodes(problem: SharedStore, names: tuple[str, ...]) -> SharedStore:
    """Return the problem without some nodes, and without those of some domains."""
    lost = np.isin(problem.node_names.astype(str), list(names))
    if _list_domains(problem):
        lost |= problem.nodes["domain"].fillna("").astype(str).isin(names).to_numpy()
    return problem.with_nodes(failed=np.maximum(problem.nodes["failed"].to_numpy(float), lost))


def _require(parameter: str, names: Iterable[str], valid: set[str], what: str) -> None:
    faults = [
        f"{parameter}: '{name}' is no {what}" + did_you_mean(name, valid)
        for name in names
        if name not in valid
    ]
    if faults:
        raise InputError(*faults)
