"""Who sends to whom: demands between the hosts of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from planner.errors import InputError

Pattern = Literal["permutation", "stride", "gravity"]


def demands(
    hosts: Sequence[str],
    *,
    workload: Pattern,
    rate_mbps: float,
    stride: int | None = None,
    pairs: int | None = None,
    random: np.random.Generator,
) -> pd.DataFrame:
    """The table `demands` of a workload by name.

    permutation  each host sends to one other, drawn so that each receives from one
    stride       host i sends to host i + stride, counted around; by default half of all hosts away
    gravity      every pair, in proportion to masses of its ends; hosts send `rate_mbps` on average

    pairs   of gravity, keep only so many demands, the largest
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
            return permutation(hosts, rate_mbps=rate_mbps, random=random)
        case "stride":
            return strided(hosts, rate_mbps=rate_mbps, stride=stride)
        case "gravity":
            return gravity(hosts, rate_mbps=rate_mbps, pairs=pairs, random=random)


def permutation(hosts: Sequence[str], *, rate_mbps: float, random: np.random.Generator) -> pd.DataFrame:
    """Every host sends to one other host and receives from one, at random."""
    while True:
        target = random.permutation(len(hosts))
        if (target != np.arange(len(hosts))).all():
            return _table(hosts, np.arange(len(hosts)), target, np.full(len(hosts), rate_mbps))


def strided(hosts: Sequence[str], *, rate_mbps: float, stride: int | None = None) -> pd.DataFrame:
    """Host i sends to host i + stride, counted around; by default half of all hosts away."""
    step = len(hosts) // 2 if stride is None else stride
    if step % len(hosts) == 0:
        raise InputError(f"problem.stride is {step}: with {len(hosts)} hosts, each would send to itself")
    source = np.arange(len(hosts))
    return _table(hosts, source, (source + step) % len(hosts), np.full(len(hosts), rate_mbps))


def gravity(
    hosts: Sequence[str], *, rate_mbps: float, pairs: int | None = None, random: np.random.Generator
) -> pd.DataFrame:
    """Every pair in proportion to the masses of its ends, lognormal and drawn apart for each direction.

    What is kept of the pairs sums up to `rate_mbps` for each host, on average.
    """
    count = len(hosts)
    sent, received = random.lognormal(size=count), random.lognormal(size=count)
    source, target = np.nonzero(~np.eye(count, dtype=bool))
    rate = sent[source] * received[target]
    if pairs is not None and pairs < len(rate):
        kept = np.sort(np.argsort(-rate, kind="stable")[:pairs])
        source, target, rate = source[kept], target[kept], rate[kept]
    return _table(hosts, source, target, rate * (rate_mbps * count / rate.sum()))


def _table(hosts: Sequence[str], source: np.ndarray, target: np.ndarray, rate: np.ndarray) -> pd.DataFrame:
    names = np.array(hosts, dtype=object)
    return pd.DataFrame({"source": names[source], "target": names[target], "rate_mbps": rate})
