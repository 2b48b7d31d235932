"""Small problems, plans and scenarios of all systems, which hostile cases damage."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from planner.contract.design import Design
from planner.contract.parameters import parameters_of
from planner.contract.system import System
from planner.errors import PlannerError
from planner.io.table_files import find_tables, read_tables
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import Entry
from planner.scenarios.shipped import scenario_names

SCENARIOS: Final = Path(__file__).parents[2] / "data" / "scenarios"
SMALL: Final = {
    "analytics": "analytics/own_data",
    "brokering": "brokering/own_data",
    "multicast": "multicast/own_tree",
}
"""Shipped tables of systems that have a large sample, or one with few of the tables."""
_chosen: list[str] = []
"""Systems whose inputs hostile cases damage; all where empty."""
_readers: list[str] = []
"""Readers whose files hostile cases damage, and nothing else; all kinds of input where empty."""
OPTIONS: Final = Options(time_limit_s=2.0, seed=1, threads=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Base:
    """A system, and a tiny problem with as many tables as there are."""

    system: System
    problem: Any
    tables: Mapping[str, pd.DataFrame]

    @functools.cache  # noqa: B019 - bases last as long as the process
    def plan(self, design: Design[Any, Any]) -> Mapping[str, pd.DataFrame]:
        """Return the tables of a design's plan on the tiny problem; none where it has no plan."""
        with contextlib.suppress(PlannerError):
            entry = Entry(label=design.name, design=design)
            run = evaluate(self.system, self.problem, entry, options=OPTIONS)
            if run.plan is not None:
                tables: Mapping[str, pd.DataFrame] = run.plan.to_tables()
                return tables
        return {}

    def draw_plan(self, draw: random.Random) -> Mapping[str, pd.DataFrame]:
        """Return the tables of the plan of one of its designs."""
        for design in draw.sample(self.system.designs, len(self.system.designs)):
            if tables := self.plan(design):
                return tables
        raise AssertionError(f"no design of {self.system.name} has a plan")


def choose_systems(names: Iterable[str]) -> None:
    """Let hostile cases damage only inputs of these systems; of all where there is no name."""
    _chosen[:] = names
    bases.cache_clear()
    documents.cache_clear()


def choose_readers(names: Iterable[str]) -> None:
    """Let hostile cases damage only files of these readers, such as `traffic/sndlib`."""
    _readers[:] = names


def chosen_readers() -> list[str]:
    """Return the readers whose files hostile cases damage; none where they damage all kinds of input."""
    return list(_readers)


def has_chosen_systems() -> bool:
    """Return whether hostile cases damage inputs of some systems only."""
    return bool(_chosen)


@functools.cache
def bases() -> tuple[Base, ...]:
    """Return a base of each system chosen."""
    return tuple(map(_base, map(find_system, _chosen or system_names())))


def _base(system: System) -> Base:
    kind = system.problem
    if system.name in SMALL:
        tables = find_tables(kind.tables, SCENARIOS / SMALL[system.name], kind.optional_tables)
        problem = kind.from_tables(read_tables(kind.tables, tables))
    else:
        problem = kind.sample() if kind.sample is not None else kind.presets["small"]()
    return Base(system=system, problem=problem, tables=problem.to_tables())


@functools.cache
def documents() -> list[dict[str, Any]]:
    """Return scenarios of small problems with every preset and every design, of the systems chosen."""
    import tomllib

    brokering = {"clients": 200, "places": 20, "city_cdns": 3, "windows": 2}
    capacity = {"cities": 5}
    cdnrouting = {"clusters": 2}
    consolidation = {"shapes": 4, "machines": 12}
    geostore = {"regions": 6, "groups": 4, "ranges": 50}
    membership = {"regions": 2, "zones": 2, "faults": 1}
    circuits = {"racks": 4, "horizon_us": 20_000.0, "writers": 4, "file_mb": 4.0}
    coflows = {"coflows": 8}
    multicast = {"k": 4, "tenants": 2, "groups": 20, "largest_tenant": 12, "events": 5}
    livevideo = {"videos": 20, "edges": 6, "sources": 2, "reflectors": 2, "viewers": 50.0, "games": 1}
    contracts = {"clients": 100, "cdns": 2}
    fairshare = {"partitions": 3, "nodes": 3}
    analytics = {"sites": 5, "pops": 2, "queries": 4, "hours": 0.25, "domains": 500}
    topology = {"blocks": 4, "ports": 6}
    rotors = {"racks": 6, "switches": 2}
    flowtables = {"rules": 20, "connections": 60, "monitored": 5, "routes": 20, "datapaths": 3}
    updates = {"count": 8, "ingresses": 3, "flows": 10, "changes": 2}
    traffic = {"tors": 4, "aggregations": 2, "intermediates": 2, "hosts_per_tor": 2, "pairs": 10}
    small: dict[str, Any] = {
        **brokering,
        **capacity,
        **circuits,
        **coflows,
        **multicast,
        **livevideo,
        **traffic,
    }
    small |= {**contracts, **fairshare, **topology, **rotors, **analytics, **flowtables, **updates}
    small |= {**cdnrouting, **consolidation, **geostore, **membership}
    result = []
    for base in bases():
        system = base.system
        designs = {design.name: {} for design in system.designs}
        for name, make in system.problem.presets.items():
            inputs = {key: small[key] for key in parameters_of(make) if key in small}
            problem = {"source": "generate", "preset": name, **inputs}
            result.append({"system": system.name, "problem": problem, "designs": designs})
    for name in scenario_names():
        document = tomllib.loads((SCENARIOS / f"{name}.toml").read_text())
        problem = document["problem"]
        if problem.get("source") == "generate":
            makers = find_system(document["system"]).problem.presets
            names = parameters_of(makers[problem["preset"]])
            problem |= {key: size for key, size in small.items() if key in names}
        elif problem.get("source") in ("topohub", "day"):
            continue
        if not _chosen or document["system"] in _chosen:
            result.append(document)
    return result
