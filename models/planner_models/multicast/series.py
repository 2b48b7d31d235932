"""Consecutive problems: the same network and groups, as hosts join and leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError
from planner.table_files import find_tables, read_tables
from planner_models.multicast import dynamics, generate
from planner_models.multicast.problem import Multicast
from planner_models.multicast.schema import OPTIONAL_TABLES, TABLES

Windows = Annotated[int, Field(ge=1, description="problems, one after the other")]
Events = Annotated[int, Field(ge=1, description="joins and leaves between one and the next")]
Seed = Annotated[int, Field(ge=0, description="where joins and leaves are drawn")]


@dataclass(frozen=True, kw_only=True, eq=False)
class Churned:
    """A problem, and what joins and leaves make of it: see `dynamics.churn` for who comes and goes."""

    problem: Multicast
    windows: int
    events: int
    seed: int

    def __post_init__(self) -> None:
        if self.problem.tenants is None or "tenant" not in self.problem.groups:
            raise InputError("tenants: joins and leaves need this table, and the column 'tenant' of groups")

    def __len__(self) -> int:
        return self.windows

    def __iter__(self) -> Iterator[tuple[str, Multicast]]:
        rng = np.random.default_rng(self.seed)
        problem = self.problem
        for window in range(self.windows):
            if window:
                problem = dynamics.after(problem, events=self.events, rng=rng)
            yield f"{window:0{len(str(self.windows - 1))}d}", problem


def churn(
    *,
    windows: Windows = 10,
    events: Events = 100,
    churn_seed: Seed = 0,
    k: Annotated[int, Field(ge=4, le=64, description="ports of each switch, even")] = 8,
    aggregation_copies: Annotated[int, Field(ge=1, description="ra; rc is its square")] = 2,
    table_size: Annotated[int, Field(ge=1, description="free entries of every switch")] = 100,
    tenants: Annotated[int, Field(ge=1, description="tenants")] = 20,
    groups: Annotated[int, Field(ge=1, description="groups of all tenants")] = 600,
    largest_tenant: Annotated[int, Field(ge=10, description="most hosts of a tenant")] = 60,
    placement: generate.Placement = "near",
    sizes: generate.Sizes = "wve",
    seed: Annotated[int, Field(ge=0, description="where members, rates and arrivals are drawn")] = 0,
) -> Churned:
    """Groups of a drawn datacenter (see preset datacenter), as hosts join and leave."""
    problem = generate.datacenter(
        k=k,
        aggregation_copies=aggregation_copies,
        table_size=table_size,
        tenants=tenants,
        groups=groups,
        largest_tenant=largest_tenant,
        placement=placement,
        sizes=sizes,
        seed=seed,
    )
    return Churned(problem=problem, windows=windows, events=events, seed=churn_seed)


def churn_of_tables(
    *,
    path: Annotated[Path, Field(description="folder of the problem's tables, tenants among them")],
    windows: Windows = 10,
    events: Events = 100,
    churn_seed: Seed = 0,
) -> Churned:
    """Groups of your own, as hosts of their tenants join and leave."""
    problem = Multicast.from_tables(read_tables(TABLES, find_tables(TABLES, path, OPTIONAL_TABLES)))
    return Churned(problem=problem, windows=windows, events=events, seed=churn_seed)
