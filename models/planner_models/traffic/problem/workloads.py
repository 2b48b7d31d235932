"""Workloads: demands between the hosts of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from planner.errors import InputError
from planner_models.traffic.problem.readers.gravity_demands import keep_largest

Pattern = Literal["permutation", "stride", "gravity"]


def build_demands(
    hosts: Sequence[str],
    *,
    workload: Pattern,
    rate_mbps: float,
    stride: int | None = None,
    pairs: int | None = None,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Build the table `demands` of a workload by name.

    permutation  each host sends to one random other host, so that each receives from one
    stride       host i sends to host i + stride modulo their number; by default half of it
    gravity      every pair, in proportion to masses of its ends; hosts send `rate_mbps` on average

    pairs   of gravity: number of demands, the largest; default: all
    source  Sen et al. 2013, section 7.2.1 (permutation, stride)
    """
    if stride is not None and workload != "stride":
        raise InputError(
            f"problem.stride is {stride}, but problem.workload is '{workload}', must be 'stride'"
        )
    if pairs is not None and workload != "gravity":
        raise InputError(f"problem.pairs is {pairs}, but problem.workload is '{workload}', must be 'gravity'")
    if len(hosts) < 2:
        raise InputError(f"the network has {len(hosts)} host, a workload needs at least 2")
    match workload:
        case "permutation":
            return draw_permutation(hosts, rate_mbps=rate_mbps, random=random)
        case "stride":
            return stride_demands(hosts, rate_mbps=rate_mbps, stride=stride)
        case "gravity":
            return draw_gravity(hosts, rate_mbps=rate_mbps, pairs=pairs, random=random)


def draw_permutation(hosts: Sequence[str], *, rate_mbps: float, random: np.random.Generator) -> pd.DataFrame:
    """Draw demands in which every host sends to one other host and receives from one."""
    while True:
        target = random.permutation(len(hosts))
        if (target != np.arange(len(hosts))).all():
            return _table(hosts, np.arange(len(hosts)), target, np.full(len(hosts), rate_mbps))


def stride_demands(hosts: Sequence[str], *, rate_mbps: float, stride: int | None = None) -> pd.DataFrame:
    """Build demands from each host i to host i + stride modulo their number; by default half of it."""
    step = len(hosts) // 2 if stride is None else stride
    if step % len(hosts) == 0:
        raise InputError(f"problem.stride is {step}: with {len(hosts)} hosts, each would send to itself")
    source = np.arange(len(hosts))
    return _table(hosts, source, (source + step) % len(hosts), np.full(len(hosts), rate_mbps))


def draw_gravity(
    hosts: Sequence[str], *, rate_mbps: float, pairs: int | None = None, random: np.random.Generator
) -> pd.DataFrame:
    """Draw demands in proportion to masses of their ends, lognormal and separate for each direction.

    The demands that are kept add up to `rate_mbps` for each host, on average.
    """
    count = len(hosts)
    sent, received = random.lognormal(size=count), random.lognormal(size=count)
    source, target = np.nonzero(~np.eye(count, dtype=bool))
    rate = sent[source] * received[target]
    largest = keep_largest(rate, pairs)
    source, target, rate = source[largest], target[largest], rate[largest]
    return _table(hosts, source, target, rate * (rate_mbps * count / rate.sum()))


def _table(hosts: Sequence[str], source: np.ndarray, target: np.ndarray, rate: np.ndarray) -> pd.DataFrame:
    names = np.array(hosts, dtype=object)
    return pd.DataFrame({"source": names[source], "target": names[target], "rate_mbps": rate})
