"""Information of control planes in system `traffic`: observations, realization of plans, and signalling.

The network is known already: link states are flooded when links change, not when demands do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from pydantic import Field
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Floats, Ints
from planner.contract.degradation import AgeS, Noise, Seed, add_noise, drift
from planner.contract.parameters import spread
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner.errors import InputError
from planner_models.flows import split_ratios
from planner_models.graphs.indexing import sum_by_index
from planner_models.networks.node_lists import parse_nodes
from planner_models.traffic.information import tomogravity
from planner_models.traffic.plan import classes
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic


def observe_locally(problem: Traffic, *, noise: Noise = 0.0, seed: Seed = 0) -> Traffic:
    """Return the network as it is, with each demand's current rate as its own switch measures it."""
    if noise == 0:
        return problem
    return problem.with_rates(add_noise(problem.rate_mbps, noise, np.random.default_rng(seed)))


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """Change of the rates of demands over time."""

    swing: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of a demand's rate over time")
    ] = 0.5
    memory_s: Annotated[
        float, Field(gt=0, description="time in which the autocorrelation of a demand's rate falls to 1/e, s")
    ] = 3600.0


@spread(change=RateChange())
def observe_reports(
    problem: Traffic,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity: Annotated[
        int,
        Field(ge=0, description="nodes of a region: rates are reported between regions; 0: for each demand"),
    ] = 0,
    change: RateChange,
    link_loads: Annotated[
        bool,
        Field(
            description="only loads of links and totals of nodes are reported; tomogravity estimates rates"
        ),
    ] = False,
    seed: Seed = 0,
) -> Traffic:
    """Return the network as it is, with demands' rates as reported to a controller: old, aggregated, noisy.

    The state of links is always current: it is flooded when it changes.

    age    Rates are those of `age_s` ago; each demand has drifted since then (`drift` of
           planner.contract.degradation). Common changes of all demands, such as those of the hours of a
           day, are left out: the best splits do not change with them. The default `swing` and `memory_s`
           are assumptions without data behind them; `estimate_drift` finds them in a series.
    granularity  Nodes are grouped into regions of so many on average, each of nodes that are close by
           link weights. Reports give the rates between regions, and each node's total sent and received
           traffic, as counters of access links do. Rates between nodes are estimated by gravity: shares
           of a region pair's rate in proportion to the source's total times the target's total. Demands
           of rate 0 are known to be 0. One region for all nodes gives plain gravity.
    link_loads  Reports give the load of each link under shortest paths with ECMP, and each node's total
           sent and received traffic. Rates are estimated from these (`tomogravity`). Demands of rate 0 are
           known to be 0.
    noise  Every reported rate, of a demand, between two regions or on a link, is multiplied by a lognormal
           factor of median 1.
    """
    rate = problem.rate_mbps
    if age_s > 0:
        # seeded apart from the noise, so that both are independent
        rng = np.random.default_rng([seed, 1])
        rate = drift(rate, age=age_s, memory=change.memory_s, spread=change.swing, rng=rng)
    noise_rng = np.random.default_rng(seed)
    if link_loads:
        if granularity > 1:
            raise InputError("link_loads and granularity: rates are estimated from the one or the other")
        rate = _estimate_from_loads(problem, rate, noise, noise_rng)
    elif granularity > 1:
        rate = _estimate_from_sums(problem, rate, granularity, noise, noise_rng)
    else:
        rate = add_noise(rate, noise, noise_rng)
    return problem if rate is problem.rate_mbps else problem.with_rates(rate)


def estimate_drift(rate_mbps: Floats, *, step_s: float) -> tuple[float, float]:
    """Estimate `swing` and `memory_s` of `observe_reports` from a series of rates.

    rate_mbps  (T, K) rates of K demands at T times `step_s` apart; demands that are ever 0 are left
               out, and so are common changes of all demands
    returns    standard deviation of a demand's logarithm over time, and the time in s in which its
               autocorrelation falls to 1/e, from that of one step; inf where it does not fall
    raises     ValueError for fewer than three times or two demands
    """
    positive = rate_mbps[:, (rate_mbps > 0).all(axis=0)]
    if positive.shape[0] < 3 or positive.shape[1] < 2:
        raise ValueError("drift: needs three times and two demands with rates above 0 at all times")
    level = np.log(positive)
    level = level - level.mean(axis=0)
    level = level - level.mean(axis=1, keepdims=True)
    variance = float((level**2).mean())
    correlation = float((level[1:] * level[:-1]).mean()) / variance if variance > 0 else 1.0
    memory = math.inf if correlation >= 1 else step_s / -math.log(correlation) if correlation > 0 else 0.0
    return math.sqrt(variance), memory


def _estimate_from_sums(
    problem: Traffic, rate: Floats, granularity: int, noise: float, rng: np.random.Generator
) -> Floats:
    """Return rates, (K,), estimated by gravity from their noisy sums between regions."""
    region = group_nodes(problem, granularity)
    count = len(problem.nodes)
    sent = sum_by_index(problem.source, rate, count)
    received = sum_by_index(problem.target, rate, count)
    weight = np.where(rate > 0, sent[problem.source] * received[problem.target], 0.0)
    pairs, pair = np.unique(region[problem.source] * count + region[problem.target], return_inverse=True)
    sums = add_noise(sum_by_index(pair, rate, len(pairs)), noise, rng)
    weights = sum_by_index(pair, weight, len(pairs))
    share = np.divide(weight, weights[pair], out=np.zeros(len(rate)), where=weight > 0)
    return np.asarray(sums[pair] * share)


def _estimate_from_loads(problem: Traffic, rate: Floats, noise: float, rng: np.random.Generator) -> Floats:
    """Return rates, (K,), estimated from noisy loads of links and totals of nodes."""
    share, count = tomogravity.ecmp_shares(problem), len(problem.nodes)
    sent = np.where(problem.unreachable, 0.0, rate)
    load = add_noise(np.asarray(share.T @ sent), noise, rng)
    totals = (sum_by_index(problem.source, sent, count), sum_by_index(problem.target, sent, count))
    estimated = tomogravity.estimate(problem, share, load, totals, sent)
    return np.where(problem.unreachable, rate, estimated)


def group_nodes(problem: Traffic, granularity: int) -> Ints:
    """Return the region of each node, (N,): of `granularity` nodes on average, each of nodes that are close.

    Average-linkage clustering by the weight of shortest paths, the mean of both directions; regions
    of a smaller granularity lie within those of a larger one.
    """
    # slow to import, and seldom needed
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    count = len(problem.nodes)
    regions = max(1, math.ceil(count / granularity))
    if granularity <= 1 or count == 1:
        return np.arange(count)
    distance = dijkstra(problem.link_weights)
    distance = (distance + distance.T) / 2
    finite = distance[np.isfinite(distance)]
    distance[~np.isfinite(distance)] = 2 * finite.max(initial=1.0)  # unreachable nodes are the farthest
    tree = linkage(squareform(distance, checks=False), method="average")
    return np.asarray(fcluster(tree, regions, criterion="maxclust").astype(np.int64) - 1)


def realize(truth: Traffic, observed: Traffic, plan: Routing) -> Routing:
    """Return the routing of the true rates over the split ratios of the plan.

    The share of a demand that the plan leaves unserved stays unserved. Where the plan's flows are
    per target, nodes split all traffic to a target as planned.
    """

    def relative_to_observed(rate_mbps: Floats) -> Floats:
        """Return the rates over the observed ones, shape (K,); 0 where nothing was observed."""
        observed_rate = observed.rate_mbps
        return np.divide(rate_mbps, observed_rate, out=np.zeros(len(observed_rate)), where=observed_rate > 0)

    if "source" in plan.flows:
        factor = relative_to_observed(truth.rate_mbps)
        return routing.routing_by_demand(
            truth, sp.diags_array(factor) @ routing.flow_by_demand(observed, plan)
        )
    served_share = relative_to_observed(verify_flow(observed, plan).served_mbps)
    rate_mbps = truth.rate_mbps * served_share
    if truth.has_classes:
        ratios_of = classes.ratios_by_class(observed, verify_flow(observed, plan))
        return classes.routing_by_class(truth, ratios_of, rate_mbps)
    flow = split_ratios.remove_cycles(observed, routing.flow_by_target(observed, plan).tocoo())
    ratios = split_ratios.complete_ratios(observed, split_ratios.compute_ratios(observed, flow))
    return routing.routing_by_target(truth, split_ratios.apply_ratios_by_target(truth, ratios, rate_mbps))


def signal_splits(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates to a controller, and its split ratios to every node."""
    rows = plan.flows
    ends = [name for name in ("source", "target", "head") if name in rows]
    splits = len(rows) * (NAME * len(ends) + FIGURE)
    return _with_reports(problem, messages=rows["tail"].nunique(), sent_bytes=splits)


def signal_splits_and_rates(problem: Traffic, plan: Routing) -> Signalling:
    """Count as `signal_splits`; the message to each source also has its demands' admitted rates."""
    rates = len(problem.demands) * (NAME + FIGURE)
    return signal_splits(problem, plan) + Signalling(messages=0, bytes=rates)


def signal_paths(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates to a controller, and its next hops of each flow to every node.

    An upper estimate: in practice, flows that stay on their hashed path need no message.
    """
    rows = plan.flows
    return _with_reports(problem, messages=rows["tail"].nunique(), sent_bytes=len(rows) * 3 * NAME)


def signal_weights(problem: Traffic, plan: Routing) -> Signalling:  # noqa: ARG001
    """Count the reports of demands' rates, the link weights sent to every node, and their flooding.

    An announcement names a node's links and their weights, and crosses every link once.
    """
    links = len(problem.links)
    announcers = problem.links["tail"].nunique()
    figures = links * (NAME + FIGURE)
    return _with_reports(
        problem, messages=announcers + announcers * links, sent_bytes=figures + links * figures
    )


def signal_lies(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates, and the fake nodes, which are flooded over every link.

    A fake node's announcement names its router, its next hop and its target, and has a weight.
    """
    fake = 0 if plan.lies is None else int(plan.lies["fake_nodes"].sum())
    messages = fake * len(problem.links)
    return _with_reports(problem, messages=messages, sent_bytes=messages * (3 * NAME + FIGURE))


def signal_segments(problem: Traffic, plan: Routing) -> Signalling:
    """Count the reports of demands' rates, and the segment lists sent to the sources of their demands."""
    table = plan.segments
    if table is None or table.empty:
        return _with_reports(problem, messages=0, sent_bytes=0)
    nodes = sum(len(parse_nodes(str(text))) for text in table["segments"])
    return _with_reports(
        problem, messages=table["source"].nunique(), sent_bytes=len(table) * (NAME + FIGURE) + nodes * NAME
    )


def signal_reservations(problem: Traffic, plan: Routing) -> Signalling:
    """Count the path and the reservation message of each demand on each link of its path.

    Nodes flood the available bandwidth of their links once after all reservations, 8 figures a link.
    """
    hops = len(plan.flows)
    links, nodes = len(problem.links), problem.links["tail"].nunique()
    flooded = links * (NAME + 8 * FIGURE)
    return Signalling(
        messages=2 * hops + nodes * links, bytes=2 * hops * (2 * NAME + FIGURE) + flooded * links
    )


def _with_reports(problem: Traffic, *, messages: int, sent_bytes: int) -> Signalling:
    """Add the reports of all sources to the messages that they receive."""
    reports = len(problem.demands) * (NAME + FIGURE)
    sources = int(problem.demands["source"].nunique())
    return Signalling(messages=sources + int(messages), bytes=int(reports + sent_bytes))
