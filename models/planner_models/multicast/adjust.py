"""What can be changed of any problem: which switches have failed."""

from __future__ import annotations

import copy
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner_models.multicast.failures import draw
from planner_models.multicast.problem import Multicast


def adjust(
    problem: Multicast,
    *,
    failed_aggregations: Annotated[
        int, Field(ge=0, description="aggregation switches that fail, besides those in table failed")
    ] = 0,
    failure_seed: Annotated[int, Field(ge=0, description="where they are drawn")] = 0,
) -> Multicast:
    """The problem with more aggregation switches failed, drawn uniformly; plans are made without knowing.

    raises  InputError for more than there are
    """
    if not failed_aggregations:
        return problem
    names = draw(problem.wiring, failed_aggregations, np.random.default_rng(failure_seed))
    if problem.failed is not None:
        names = [
            *problem.failed["switch"],
            *(name for name in names if name not in set(problem.failed["switch"])),
        ]
    adjusted = copy.copy(problem)  # nothing that was worked out before depends on what has failed
    object.__setattr__(adjusted, "failed", pd.DataFrame({"switch": names}))
    return adjusted
