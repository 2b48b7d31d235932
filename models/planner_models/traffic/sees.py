"""What control planes believe about a traffic problem, and how their plans play out in truth."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner_models.traffic import cycles, routing, splits
from planner_models.traffic.check import carried
from planner_models.traffic.problem import Traffic, totals
from planner_models.traffic.routing import Routing

Noise = Annotated[
    float, Field(ge=0, description="standard deviation of the logarithm of each measured or told rate")
]
Seed = Annotated[int, Field(ge=0, description="seed of noise, and of how demands have moved meanwhile")]


def observed(problem: Traffic, *, noise: Noise = 0.0, seed: Seed = 0) -> Traffic:
    """The network as it is, and every demand's rate as its switch measures it, now and one by one.

    noise  times a lognormal factor of median 1
    """
    return problem if noise == 0 else problem.with_rates(_noisy(problem.rate_mbps, noise, seed))


def told(
    problem: Traffic,
    *,
    age_s: Annotated[float, Field(ge=0, description="seconds since rates were measured")] = 0.0,
    noise: Noise = 0.0,
    grain: Annotated[
        int, Field(ge=0, description="nodes of a region: told are rates between regions; 0: each demand's")
    ] = 0,
    swing: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of a demand's rate over time")
    ] = 0.5,
    memory_s: Annotated[
        float, Field(gt=0, description="seconds in which a demand forgets where it was, to 1/e")
    ] = 3600.0,
    seed: Seed = 0,
) -> Traffic:
    """The network as it is, and the demands' rates as a controller is told them: late, in sum, with noise.

    Links are known at all times: their states are flooded when they change.

    age    Rates are as they were `age_s` ago. In the meantime the logarithm of every rate has moved on
           its own, as an Ornstein-Uhlenbeck process in equilibrium: then and now differ by a normal
           figure of variance 2 swing^2 (1 - exp(-age_s / memory_s)). What all demands do together, as
           the hours of a day, is left out: the best splits do not change with it. The defaults are
           assumed, no data stands behind them; `drift` finds `swing` and `memory_s` in a series.
    grain  Nodes are grouped into regions of so many on average, each of those that are closest by link
           weights. Told are rates between regions, and what each node sends and receives in all, as
           counters of access links show; rates between nodes are then guessed by gravity: shares of a
           region's rate in proportion to what the source sends times what the target receives. A pair
           that wants nothing is known to. With one region for all this is plain gravity.
    noise  Every figure that is told of a rate, of a demand or between two regions, is multiplied by a
           lognormal factor of median 1.
    """
    rate = problem.rate_mbps
    if age_s > 0 and swing > 0:
        moved = swing * math.sqrt(-2 * math.expm1(-age_s / memory_s))
        # the seed of the noise draws other figures
        rate = rate * np.random.default_rng([seed, 1]).lognormal(0.0, moved, size=len(rate))
    if grain > 1:
        rate = _in_sum(problem, rate, grain, noise, seed)
    elif noise > 0:
        rate = _noisy(rate, noise, seed)
    return problem if rate is problem.rate_mbps else problem.with_rates(rate)


def drift(rate_mbps: NDArray[np.float64], *, step_s: float) -> tuple[float, float]:
    """The `swing` and `memory_s` of a series of rates, for `told`.

    rate_mbps  (T, K) rates of K demands at T times `step_s` apart; demands that ever want nothing are
               left out, and so is what all demands do together
    returns    standard deviation of a demand's logarithm over time, and the seconds in which its
               autocorrelation falls to 1/e, from that of one step; inf where it does not fall
    raises     ValueError for fewer than three times or two demands
    """
    known = rate_mbps[:, (rate_mbps > 0).all(axis=0)]
    if known.shape[0] < 3 or known.shape[1] < 2:
        raise ValueError("drift: wants three times and two demands that always want something")
    level = np.log(known)
    level = level - level.mean(axis=0)
    level = level - level.mean(axis=1, keepdims=True)
    variance = float((level**2).mean())
    kept = float((level[1:] * level[:-1]).mean()) / variance if variance > 0 else 1.0
    memory = math.inf if kept >= 1 else step_s / -math.log(kept) if kept > 0 else 0.0
    return math.sqrt(variance), memory


def _noisy(figure: NDArray[np.float64], noise: float, seed: int) -> NDArray[np.float64]:
    if noise == 0:
        return figure
    return figure * np.random.default_rng(seed).lognormal(0.0, noise, size=len(figure))


def _in_sum(
    problem: Traffic, rate: NDArray[np.float64], grain: int, noise: float, seed: int
) -> NDArray[np.float64]:
    """(K,) rates guessed from their noisy sums between regions."""
    region = regions(problem, grain)
    count = len(problem.nodes)
    sent = totals(problem.source, rate, count)
    received = totals(problem.target, rate, count)
    weight = np.where(rate > 0, sent[problem.source] * received[problem.target], 0.0)
    pairs, of = np.unique(region[problem.source] * count + region[problem.target], return_inverse=True)
    sums = _noisy(totals(of, rate, len(pairs)), noise, seed)
    weights = totals(of, weight, len(pairs))
    guessed: NDArray[np.float64] = sums[of] * np.divide(
        weight, weights[of], out=np.zeros(len(rate)), where=weight > 0
    )
    return guessed


def regions(problem: Traffic, grain: int) -> NDArray[np.int64]:
    """(N,) the region of each node: of `grain` nodes on average, each of nodes that are close.

    Closeness is the weight of shortest paths, the mean of both ways; regions of two grains are nested.
    """
    # slow to import, and seldom wanted
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    count = len(problem.nodes)
    wanted = max(1, math.ceil(count / grain))
    if grain <= 1 or count == 1:
        return np.arange(count)
    # of parallel links the lightest counts
    order = np.lexsort((problem.weight, problem.head, problem.tail))
    tail, head, weight = problem.tail[order], problem.head[order], problem.weight[order]
    first = np.r_[True, (np.diff(tail) != 0) | (np.diff(head) != 0)]
    apart = dijkstra(sp.csr_array((weight[first], (tail[first], head[first])), shape=(count, count)))
    apart = (apart + apart.T) / 2
    known = apart[np.isfinite(apart)]
    apart[~np.isfinite(apart)] = 2 * known.max(initial=1.0)  # what cannot be reached is far
    tree = linkage(squareform(apart, checks=False), method="average")
    found: NDArray[np.int64] = fcluster(tree, wanted, criterion="maxclust").astype(np.int64) - 1
    return found


def enact(truth: Traffic, believed: Traffic, plan: Routing) -> Routing:
    """The plan as it plays out: each demand takes its splits, at its true rate.

    The share of a demand that the plan meant to leave unserved stays unserved.
    """
    if "source" not in plan.flows:
        return _enacted_by_target(truth, believed, plan)
    factor = np.divide(
        truth.rate_mbps, believed.rate_mbps, out=np.zeros(len(truth.demands)), where=believed.rate_mbps > 0
    )
    flow = sp.diags_array(factor) @ routing.flow_mbps(believed, plan)
    return routing.by_pair(truth, flow)


def _enacted_by_target(truth: Traffic, believed: Traffic, plan: Routing) -> Routing:
    """The same of a plan with flows per target: nodes split what they get for a target as planned."""
    flow = routing.flow_to_mbps(believed, plan)
    served = carried(believed, plan).served_mbps
    share = np.divide(served, believed.rate_mbps, out=np.zeros(len(served)), where=believed.rate_mbps > 0)
    ways = splits.of_flow(believed, cycles.without(believed, flow.tocoo()))
    ratios = splits.completed(believed, ways)
    return routing.by_target(truth, splits.gathered(truth, ratios, truth.rate_mbps * share))
