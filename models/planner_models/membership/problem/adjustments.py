"""Adjustments that apply to every problem of system `membership`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner_models.membership.problem.problem import USUAL, Membership
from planner_models.membership.problem.schema import KINDS, MAX_RATE, WATCHER_KINDS, WITNESS_SITE

Factor = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


def adjust(
    problem: Membership,
    *,
    rate: Annotated[
        dict[str, Factor], Field(description="kinds of sites, and what their failures are multiplied by")
    ] = {},  # noqa: B006 - never changed
    rate_sites: Annotated[
        dict[str, Factor], Field(description="sites, and what their failures are multiplied by")
    ] = {},  # noqa: B006 - never changed
    rtt: Annotated[Positive, Field(description="all round-trip times are multiplied by this")] = 1.0,
    lost: Annotated[tuple[str, ...], Field(description="sites that are down for good")] = (),
    more_hosts: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=1000)]],
        Field(description="sites without others in them, and members more that they can have"),
    ] = {},  # noqa: B006 - never changed
    timeout: Annotated[
        dict[str, Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)]],
        Field(description="kinds of failure detectors, and their timeout in ms"),
    ] = {},  # noqa: B006 - never changed
    more_faults: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=15)]],
        Field(description="services, and the failures that they tolerate beside theirs, with more members"),
    ] = {},  # noqa: B006 - never changed
    more_managers: Annotated[
        dict[str, Annotated[int, Field(ge=0, le=31)]],
        Field(description="services, and the managers that decide beside theirs who is up"),
    ] = {},  # noqa: B006 - never changed
    witnesses: Annotated[
        tuple[str, ...],
        Field(description="sites without hosts that get one, for a member that votes and stores no data"),
    ] = (),
    target_scale: Annotated[
        Positive, Field(description="processes that managers watch are multiplied by this")
    ] = 1.0,
) -> Membership:
    """Return the problem with other failures, delays, hosts, timeouts, members or managers.

    raises  InputError for kinds, sites and services that are none
    """
    sites = _scale_failures(problem, rate, rate_sites)
    services = _scale_targets(problem, target_scale)
    if lost:
        sites = sites.assign(state=_mark_lost(problem, lost))
    if more_hosts:
        sites = sites.assign(hosts=_add_hosts(problem, more_hosts))
    if witnesses:
        sites = _add_witnesses(problem, sites, witnesses)
    changes: dict[str, Any] = {
        "sites": sites,
        "delays": _scale_delays(problem, rtt),
        "services": _enlarge_services(problem, services, more_faults, more_managers),
        "watchers": _set_timeouts(problem, timeout) if timeout else problem.watchers,
    }
    changes = {name: frame for name, frame in changes.items() if frame is not getattr(problem, name)}
    return replace(problem, **changes) if changes else problem


def _mark_lost(problem: Membership, lost: tuple[str, ...]) -> np.ndarray:
    """Return the column of states with some sites lost for good."""
    blank = pd.Series("", index=problem.sites.index)
    state = problem.sites.get("state", blank).to_numpy(object).copy()
    state[problem.require("lost", lost)] = "lost"
    return np.asarray(state)


def _scale_delays(problem: Membership, factor: float) -> pd.DataFrame | None:
    """Return the delays with all times multiplied."""
    delays = problem.delays
    if factor == 1 or delays is None:
        return delays
    columns = [name for name in ("rtt_ms", "p99_ms") if name in delays]
    return delays.assign(**{name: delays[name] * factor for name in columns})


def _scale_targets(problem: Membership, factor: float) -> pd.DataFrame:
    """Return the services with the processes that their managers watch multiplied."""
    if factor == 1:
        return problem.services
    targets = [float(item.targets or item.size) for item in problem.service_list]
    return problem.services.assign(targets=np.round(np.array(targets) * factor))


def _require_services(names: list[str], changes: dict[str, dict[str, int]]) -> None:
    """Raise InputError for names in changes, by parameter, that are none of services."""
    faults = [
        f"{parameter}: there is no service '{name}'" + did_you_mean(name, names)
        for parameter, by_service in changes.items()
        for name in by_service
        if name not in names
    ]
    if faults:
        raise InputError(*faults)


def _enlarge_services(
    problem: Membership, services: pd.DataFrame, more_faults: dict[str, int], more_managers: dict[str, int]
) -> pd.DataFrame:
    """Return the services with more failures that they tolerate, and more managers.

    A number of members that is given grows by two for each failure, by three where members may lie.
    """
    names = [item.name for item in problem.service_list]
    _require_services(names, {"more_faults": more_faults, "more_managers": more_managers})
    if more_faults:
        added = np.array([more_faults.get(name, 0) for name in names], dtype=float)
        services = services.assign(faults=services["faults"].to_numpy(float) + added)
        if "members" in services:
            each = np.array([3.0 if item.is_byzantine else 2.0 for item in problem.service_list])
            services = services.assign(members=services["members"].to_numpy(float) + each * added)
    if more_managers:
        managers = [float(item.managers + more_managers.get(item.name, 0)) for item in problem.service_list]
        services = services.assign(managers=managers)
    return services


def _scale_failures(
    problem: Membership, rate: dict[str, float], rate_sites: dict[str, float]
) -> pd.DataFrame:
    """Return the sites with failures multiplied, by kinds and by sites."""
    faults = [
        f"rate: '{kind}' is no kind of site" + did_you_mean(kind, KINDS) for kind in rate if kind not in KINDS
    ]
    if faults:
        raise InputError(*faults)
    if not rate and not rate_sites:
        return problem.sites
    factor = np.array([rate.get(KINDS[kind], 1.0) for kind in problem.kind.tolist()])
    factor[problem.require("rate_sites", rate_sites)] *= np.array(list(rate_sites.values()))
    scaled = problem.sites["fails_per_month"].to_numpy(float) * factor
    return problem.sites.assign(fails_per_month=np.minimum(scaled, MAX_RATE))


def _add_hosts(problem: Membership, more_hosts: dict[str, int]) -> np.ndarray:
    """Return the column of hosts with more of them."""
    rows = problem.require("more_hosts", more_hosts)
    faults = [
        f"more_hosts: '{name}' has other sites in it, members cannot be there"
        for name, row in zip(more_hosts, rows.tolist(), strict=True)
        if problem.tree.children[row]
    ]
    if faults:
        raise InputError(*faults)
    blank = np.full(len(problem.sites), np.nan)
    hosts = problem.sites["hosts"].to_numpy(float).copy() if "hosts" in problem.sites else blank
    before = problem.tree.capacity[rows]
    hosts[rows] = before + np.array(list(more_hosts.values()))
    return hosts


def _add_witnesses(problem: Membership, sites: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    """Return the sites with a host for a witness at some that have none."""
    rows = problem.require("witnesses", names)
    faults = []
    for name, row in zip(names, rows.tolist(), strict=True):
        if problem.tree.children[row]:
            faults.append(f"witnesses: '{name}' has other sites in it, members cannot be there")
        elif problem.tree.capacity[row]:
            faults.append(f"witnesses: '{name}' has hosts already, it must have none; mark it in the table")
    if faults:
        raise InputError(*faults)
    blank = pd.Series(np.nan, index=sites.index)
    hosts = sites.get("hosts", blank).to_numpy(float).copy()
    witness = sites.get("witness", pd.Series("", index=sites.index)).to_numpy(object).copy()
    hosts[rows], witness[rows] = 1.0, WITNESS_SITE
    return sites.assign(hosts=hosts, witness=witness)


def _set_timeouts(problem: Membership, timeout: dict[str, float]) -> pd.DataFrame:
    """Return the table of watchers with other timeouts; a kind without a row gets one."""
    faults = [
        f"timeout: '{kind}' is no kind of failure detector" + did_you_mean(kind, WATCHER_KINDS)
        for kind in timeout
        if kind not in WATCHER_KINDS
    ]
    if faults:
        raise InputError(*faults)
    kinds = [] if problem.watchers is None else problem.watchers["kind"].astype(str).tolist()
    rows = []
    for kind in [*kinds, *(kind for kind in timeout if kind not in kinds)]:
        watcher = problem.watcher(kind)
        seconds = timeout[kind] / 1e3 if kind in timeout else watcher.timeout_s
        usual = USUAL[kind]
        interval = watcher.interval_s
        if kind in timeout and kind not in kinds:
            interval = min(usual.interval_s, seconds / 3)
        capacity = float("nan") if watcher.capacity_per_s is None else watcher.capacity_per_s
        rows.append((kind, interval * 1e3, seconds * 1e3, capacity, watcher.bytes))
    return pd.DataFrame(rows, columns=["kind", "interval_ms", "timeout_ms", "capacity_per_s", "bytes"])
