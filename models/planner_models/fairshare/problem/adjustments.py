"""Adjustments that apply to every problem of system `fairshare`, whatever its source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner_models.fairshare.problem.problem import SharedStore

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def adjust(
    problem: SharedStore,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every demand is multiplied by this")
    ] = 1.0,
    rate_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every node's rate is multiplied by this")
    ] = 1.0,
    memory_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every node's memory is multiplied by this")
    ] = 1.0,
    weights: Annotated[
        dict[str, Positive], Field(description="tenants, and weights that replace those of the table")
    ] = {},  # noqa: B006 - never changed
    weight_factors: Annotated[
        dict[str, Positive], Field(description="tenants, and what their weights are multiplied by")
    ] = {},  # noqa: B006 - never changed
    demand_factors: Annotated[
        dict[str, Factor], Field(description="tenants, and what their demands are multiplied by")
    ] = {},  # noqa: B006 - never changed
    rate_factors: Annotated[
        dict[str, Positive], Field(description="nodes, and what their rates are multiplied by")
    ] = {},  # noqa: B006 - never changed
    memory_factors: Annotated[
        dict[str, Positive], Field(description="nodes, and what their memory is multiplied by")
    ] = {},  # noqa: B006 - never changed
    fail_nodes: Annotated[
        tuple[str, ...], Field(description="nodes, or domains of nodes, that do not work")
    ] = (),
) -> SharedStore:
    """Return the problem with other demands, weights, rates, memory or nodes.

    raises  InputError for a name that is no tenant's, node's or domain's
    """
    changed = problem
    tenants, nodes = set(problem.tenant_names.tolist()), set(problem.node_names.tolist())
    domains = set(problem.nodes["domain"].dropna().astype(str)) - {""} if "domain" in problem.nodes else set()
    _require("weights", weights, tenants, "tenant")
    _require("weight_factors", weight_factors, tenants, "tenant")
    _require("demand_factors", demand_factors, tenants, "tenant")
    _require("rate_factors", rate_factors, nodes, "node")
    _require("memory_factors", memory_factors, nodes, "node")
    _require("fail_nodes", fail_nodes, nodes | domains, "node")
    if scale != 1 or demand_factors:
        factor = np.array([demand_factors.get(name, 1.0) for name in problem.tenant_names])
        changed = changed.with_demand(problem.demand_kops * scale * factor[problem.tenant])
        if problem.events is not None:
            names = problem.events["tenant"].astype(str)
            each = scale * np.array([demand_factors.get(name, 1.0) for name in names])
            changed = changed.with_events(
                problem.events.assign(demand_kops=problem.events["demand_kops"] * each)
            )
    if weights or weight_factors:
        weight = [
            weights.get(name, old) * weight_factors.get(name, 1.0)
            for name, old in zip(problem.tenant_names, problem.weight, strict=True)
        ]
        changed = changed.with_tenants(weight=np.array(weight, dtype=float))
    if rate_scale != 1 or rate_factors:
        faster = np.array([rate_factors.get(name, 1.0) for name in problem.node_names]) * rate_scale
        changed = changed.with_nodes(rate_kops=changed.nodes["rate_kops"] * faster)
    if memory_scale != 1 or memory_factors:
        larger = np.array([memory_factors.get(name, 1.0) for name in problem.node_names]) * memory_scale
        changed = changed.with_nodes(memory_gb=changed.nodes["memory_gb"] * larger)
    if fail_nodes:
        lost = np.isin(problem.node_names.astype(str), list(fail_nodes))
        if domains:
            lost |= problem.nodes["domain"].fillna("").astype(str).isin(fail_nodes).to_numpy()
        changed = changed.with_nodes(failed=np.maximum(changed.nodes["failed"].to_numpy(float), lost))
    return changed


def _require(parameter: str, names: Iterable[str], valid: set[str], what: str) -> None:
    faults = [
        f"{parameter}: '{name}' is no {what}" + did_you_mean(name, valid)
        for name in names
        if name not in valid
    ]
    if faults:
        raise InputError(*faults)
