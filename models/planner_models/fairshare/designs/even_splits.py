"""Stores in which requests do not choose replicas: each replica is a partition with a part of the demand."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.plan.service import split_evenly
from planner_models.fairshare.problem.problem import SharedStore


def divide_partitions(problem: SharedStore, replicas: Replicas) -> tuple[SharedStore, Replicas]:
    """Return a store with partition k for replica k, an even part of the requests each, and its replicas.

    Its fair rates are those of the given replicas where requests are split evenly over them. Partitions
    without a replica follow, without one.
    """
    count = np.bincount(replicas.partition, minlength=len(problem.partitions))
    rows = np.concatenate([replicas.partition, np.flatnonzero(count == 0)])
    split = np.ones(len(rows))
    split[: len(replicas.partition)] = split_evenly(replicas, len(count))
    columns = problem.partitions.iloc[rows].reset_index(drop=True)
    divided = SharedStore(
        nodes=problem.nodes,
        tenants=problem.tenants.assign(replicas=1.0),
        partitions=columns.assign(
            partition=pd.Series(range(len(rows))).astype(str), demand_kops=columns["demand_kops"] * split
        ),
        resources=problem.resources,
        uses=problem.uses,
    )
    return divided, Replicas(np.arange(len(replicas.partition)), replicas.node)
