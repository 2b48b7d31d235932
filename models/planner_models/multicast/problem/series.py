"""Series of problems: the same network and groups, as hosts join and leave."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner_models.multicast.problem import churn, generators
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.multicast.problem.workloads import Tenancy

Windows = Annotated[int, Field(ge=1, description="number of consecutive problems")]
Events = Annotated[int, Field(ge=1, description="joins and leaves between one problem and the next")]
Seed = Annotated[int, Field(ge=0, description="seed of the joins and leaves")]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChurnSeries:
    """A problem, and the problems that follow as hosts join and leave (see `churn`)."""

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
                problem = churn.apply_churn(problem, events=self.events, rng=rng)
            yield f"{window:0{len(str(self.windows - 1))}d}", problem


@spread(fabric_size=generators.FatTree(), tenancy=Tenancy())
def generate_churn(
    *,
    windows: Windows = 10,
    events: Events = 100,
    churn_seed: Seed = 0,
    fabric_size: generators.FatTree,
    tenancy: Tenancy,
    seed: Annotated[int, Field(ge=0, description="seed of members, rates and arrivals")] = 0,
) -> ChurnSeries:
    """Return groups of a generated datacenter (see preset datacenter), as hosts join and leave."""
    problem = generators.datacenter(**vars(fabric_size), **vars(tenancy), seed=seed)
    return ChurnSeries(problem=problem, windows=windows, events=events, seed=churn_seed)


def read_churn(
    *,
    path: Annotated[Path, Field(description="folder of the problem's tables, including tenants")],
    windows: Windows = 10,
    events: Events = 100,
    churn_seed: Seed = 0,
) -> ChurnSeries:
    """Return groups of your own tables, as hosts of their tenants join and leave."""
    problem = Multicast.from_tables(read_tables(TABLES, find_tables(TABLES, path, OPTIONAL_TABLES)))
    return ChurnSeries(problem=problem, windows=windows, events=events, seed=churn_seed)
