"""The designs of system `multicast`: who decides which groups get entries, and which share one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear import LinearProgram
from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision, Design, Mechanism
from planner_models.multicast import channels, select
from planner_models.multicast.plan import Channels, counted, edge_name
from planner_models.multicast.problem import Multicast

METRIC: Final = "host_traffic_mbps"
IN_TURN: Final = "partitions given in turn"
Choose = Annotated[
    Literal["value", "arrival"],
    Field(description="groups with entries: value: those that save the most; arrival: first come"),
]
Method = Annotated[
    Literal["agglomerative", "algorithm2", "optimum"],
    Field(description="how edge switches share entries; optimum is for switches with few port sets"),
]
Delta = Annotated[
    float, Field(ge=0, description="of algorithm2: a new entry where sharing adds this share of traffic")
]


def per_switch(
    problem: Multicast,
    *,
    options: Options = Options(),  # noqa: ARG001 - nothing is solved
    previous: Decision[Channels] | None = None,  # noqa: ARG001
) -> Decision[Channels]:
    """Any core and aggregation switch may get any group, so each must hold all; first come, first served.

    Groups that do not fit go by unicast.
    """
    return _first_come(problem, copies=problem.half)


def partitioned(
    problem: Multicast,
    *,
    choose: Choose = "value",
    options: Options = Options(),
    previous: Decision[Channels] | None = None,  # noqa: ARG001
) -> Decision[Channels]:
    """Each core and aggregation switch holds its part of the addresses; other groups go by unicast.

    The bound holds for partitions given in turn and entries that are not shared.
    """
    copies = problem.aggregation_copies
    if choose == "arrival":
        return _first_come(problem, copies=copies)
    partition = select.in_turn(problem, copies)
    solution = backends.solve(model(problem), options)
    proof = Proof(
        status=solution.status,
        objective=solution.objective,
        bound=solution.bound,
        metric=METRIC,
        within=f"{IN_TURN}, no shared entries",
        seconds=None,
        backend=solution.backend,
        reasons=solution.reasons,
    )
    if solution.x is None:
        return Decision(plan=None, proof=proof)
    plan = _plan(problem, solution.x > 0.5, partition, copies, _nothing_shared())
    return Decision(plan=plan, proof=proof)


def partitioned_aggregated(
    problem: Multicast,
    *,
    method: Method = "agglomerative",
    delta: Delta = 0.2,
    options: Options = Options(),
    previous: Decision[Channels] | None = None,  # noqa: ARG001
) -> Decision[Channels]:
    """Address parts above, shared entries below: edge switches whose tables overflow merge groups.

    Groups that core and aggregation tables cannot hold go by unicast: those that save the least. The
    bound holds for partitions given in turn, whatever edge switches share. Method `optimum` is exact
    at each edge switch for the groups chosen; where its time is up before any plan, the heuristic's stands.

    raises  InputError from `optimum` where a switch has too many different port sets, and from
            `algorithm2` where a table is smaller than the ports and two
    """
    copies = problem.aggregation_copies
    partition = select.in_turn(problem, copies)
    solution = backends.solve(select.model(problem, partition, copies, edges=False), options)
    proof = Proof(
        status=solution.status,
        backend=solution.backend,
        metric=METRIC,
        seconds=None,
        reasons=solution.reasons,
    )
    if solution.x is None or solution.objective is None:
        return Decision(plan=None, proof=proof)
    kept = solution.x > 0.5
    shared, extra = _shared(problem, kept, method, delta, options)
    objective = solution.objective + extra
    bound = max(least_mbps(problem), -np.inf if solution.bound is None else solution.bound)
    status = Status.OPTIMAL if objective - bound <= 1e-9 * max(1.0, objective) else Status.FEASIBLE
    proof = replace(proof, status=status, objective=objective, bound=bound, within=IN_TURN)
    return Decision(plan=_plan(problem, kept, partition, copies, shared), proof=proof)


def model(problem: Multicast, *, choose: Choose = "value") -> LinearProgram:  # noqa: ARG001
    """The program of `partitioned`."""
    copies = problem.aggregation_copies
    return select.model(problem, select.in_turn(problem, copies), copies, edges=True)


def least_mbps(problem: Multicast) -> float:
    """No plan has less host traffic: at each edge switch all but a table of port sets cost extra.

    A group is then either carried to one port too many, or by unicast, which adds its rate for all
    members but one; that is shared out evenly over its edge switches.
    """
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    reached = problem.edges_in_pod.sum(axis=1)
    weight = rate * np.minimum(1.0, (members - 1) / reached)
    start = np.searchsorted(edge, np.arange(problem.k * problem.half + 1)).tolist()
    size = problem.table_size("edge")
    extra = sum(
        channels.least_extra_mbps(masks[a:b], weight[group[a:b]], size)
        for a, b in pairwise(start)
        if b - a > size
    )
    return float(rate @ (1 + members)) + extra


def _first_come(problem: Multicast, *, copies: int) -> Decision[Channels]:
    partition = select.in_turn(problem, copies)
    kept = select.by_arrival(select.room(problem, partition, copies, edges=True))
    worth = select.unicast_mbps(problem) - float(select.saved_mbps(problem)[kept].sum())
    proof = Proof(status=Status.FEASIBLE, objective=worth, metric=METRIC, seconds=None)
    return Decision(plan=_plan(problem, kept, partition, copies, _nothing_shared()), proof=proof)


def _shared(
    problem: Multicast, kept: NDArray[np.bool_], method: str, delta: float, options: Options
) -> tuple[pd.DataFrame, float]:
    """The table meta_groups of the edge switches that overflow, and the extra traffic in all."""
    edge, group, masks = problem.at_edge
    here = kept[group]
    edge, group, masks = edge[here], group[here], masks[here]
    names = problem.groups["group"].to_numpy()
    size = problem.table_size("edge")
    start = np.searchsorted(edge, np.arange(problem.k * problem.half + 1)).tolist()
    frames, extra = [_nothing_shared()], 0.0
    for switch, (a, b) in enumerate(pairwise(start)):
        if b - a <= size:
            continue
        ports, rates = masks[a:b], problem.rate_mbps[group[a:b]]
        meta = channels.dedupe(ports)
        if meta.max() >= size:
            meta = _merged(ports, rates, size, problem.half, method, delta, options)
        extra += channels.extra_mbps(ports, rates, meta)
        name = edge_name(problem, switch)
        frames.append(
            pd.DataFrame({"switch": name, "meta_group": meta.astype(float), "group": names[group[a:b]]})
        )
    return pd.concat(frames[1:] or frames, ignore_index=True), extra


def _merged(
    ports: channels.Masks,
    rates: channels.Rates,
    size: int,
    count: int,
    method: str,
    delta: float,
    options: Options,
) -> channels.Meta:
    if method == "algorithm2":
        return channels.algorithm2(ports, rates, table_size=size, ports=count, delta=delta)
    if method == "optimum":
        meta, _ = channels.optimum(ports, rates, table_size=size, options=options)
        if meta is not None:
            return meta  # else the time was up before any plan: the heuristic's stands
    return channels.agglomerative(ports, rates, table_size=size)


def _nothing_shared() -> pd.DataFrame:
    return pd.DataFrame(
        {"switch": pd.Series(dtype=str), "meta_group": pd.Series(dtype=float), "group": pd.Series(dtype=str)}
    )


def _plan(
    problem: Multicast,
    kept: NDArray[np.bool_],
    partition: NDArray[np.int64],
    copies: int,
    shared: pd.DataFrame,
) -> Channels:
    names = problem.groups["group"].to_numpy()[kept]
    partitions = pd.DataFrame(
        {"group": names, "partition": partition[kept].astype(float), "copies": float(copies)}
    )
    entries = counted(problem, partitions, shared)
    return Channels(partitions=partitions, meta_groups=shared, entries=entries)


DESIGNS: Final = (
    Design(
        name="partitioned_aggregated",
        decide=partitioned_aggregated,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="a controller gives each switch its part of the addresses once, and each new group an "
        "address; aggregation switches tell edge switches below which addresses they rewrite",
        source="Scaling IP Multicast on Datacenter Topologies, sections 3.1 and 3.2",
    ),
    Design(
        name="partitioned",
        decide=partitioned,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="a controller gives each switch its part of the addresses once, and each new "
        "group an address",
        source="Scaling IP Multicast on Datacenter Topologies, section 3.1",
        model=model,
    ),
    Design(
        name="per_switch",
        decide=per_switch,
        mechanism=Mechanism.NONE,
        messages="switches forward joins and leaves up the tree",
        source="Scaling IP Multicast on Datacenter Topologies, section 2",
    ),
)
