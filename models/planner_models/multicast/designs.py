"""The designs of system `multicast`: who decides which groups get entries, and which share one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner import backends
from planner.backends.linear import LinearProgram
from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision, Design, Mechanism
from planner_models.multicast import (
    agglomerate,
    algorithm2,
    channels,
    exact,
    exchange,
    incremental,
    sees,
    select,
)
from planner_models.multicast.plan import Channels, counted
from planner_models.multicast.problem import LAYERS, Multicast
from planner_models.multicast.stored import Stored, at_aggregations, at_edges, rows_of

METRIC: Final = "host_traffic_mbps"
IN_TURN: Final = "partitions given in turn"
Choose = Annotated[
    Literal["value", "arrival"],
    Field(description="groups with entries: value: those that save the most; arrival: first come"),
]
Method = Annotated[
    Literal["agglomerative", "algorithm2", "optimum"],
    Field(description="how switches share entries; optimum is for switches with few port sets"),
]
Share = Annotated[
    Literal["edge", "aggregation", "both"], Field(description="the switches whose groups share entries")
]
Everywhere = Annotated[
    bool, Field(description="share at every such switch, not only where the table overflows")
]
Rounds = Annotated[
    int, Field(ge=0, description="of agglomerative: how often it searches on for better shared entries")
]
Delta = Annotated[
    float, Field(ge=0, description="of algorithm2: a new entry where sharing adds this share of cost")
]
Spare = Annotated[
    int, Field(ge=0, description="of algorithm2: groups that want all ports but so many go to all")
]
Keep = Annotated[
    float,
    Field(ge=0, description="after a previous plan: share anew where that saves this share of traffic"),
]
PortMbps = Annotated[
    float | None,
    Field(gt=0, description="of algorithm2: ports' speed, for congestion that rises with load"),
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
    return _first_come(problem, copies=problem.whole_copies)


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
    kept, proof = _chosen(problem, LAYERS, options)
    proof = replace(proof, within=f"{IN_TURN}, no shared entries")
    if kept is None:
        return Decision(plan=None, proof=proof)
    plan = plan_of(problem, kept, select.in_turn(problem, copies), copies, nothing_shared())
    return Decision(plan=plan, proof=proof)


def partitioned_aggregated(
    problem: Multicast,
    *,
    share: Share = "edge",
    method: Method = "agglomerative",
    everywhere: Everywhere = False,
    rounds: Rounds = 1,
    delta: Delta = 0.2,
    spare: Spare = 0,
    port_mbps: PortMbps = None,
    keep: Keep = 0.0,
    options: Options = Options(),
    previous: Decision[Channels] | None = None,
) -> Decision[Channels]:
    """Address parts above, shared entries below: switches whose tables overflow merge groups.

    Groups that the other layers' tables cannot hold go by unicast: those that save the least. The bound
    holds for partitions given in turn, whatever switches of the layer share. Method `optimum` is exact at
    each switch for the groups chosen; where its time is up before any plan, the heuristic's stands. With
    a previous plan, agglomerative sharing goes on from its entries (see `keep`).

    raises  InputError from `optimum` where a switch has too many different port sets, from
            `algorithm2` where a table is smaller than the ports and two, and for `port_mbps` with
            another method
    """
    if port_mbps is not None and method != "algorithm2":
        raise InputError(f"port_mbps: is for method algorithm2, this is {method}")
    copies = problem.aggregation_copies
    partition = select.in_turn(problem, copies)
    sharing = {"edge": ("edge",), "aggregation": ("aggregation",), "both": ("aggregation", "edge")}[share]
    within = f"{IN_TURN}, entries shared by {' and '.join(sharing)} switches"
    kept, proof = _chosen(problem, tuple(name for name in LAYERS if name not in sharing), options)
    if kept is None or proof.objective is None:
        return Decision(plan=None, proof=replace(proof, within=within))
    frames, extra = [nothing_shared()], 0.0
    for layer in sharing:
        stored = at_edges(problem, kept)
        if layer == "aggregation":
            stored = at_aggregations(problem, partition, problem.distribution(copies), kept)
        frame, more = _shared(
            problem,
            stored,
            method,
            everywhere,
            rounds,
            delta,
            spare,
            port_mbps,
            keep,
            options,
            None if previous is None else previous.plan,
        )
        frames.append(frame)
        extra += more if layer == "edge" else 0.0  # what edge switches drop reaches no host
    shared = pd.concat(frames[1:], ignore_index=True) if len(frames) > 2 else frames[-1]
    objective = proof.objective + extra
    least = least_mbps(problem) if "edge" in sharing else -np.inf
    bound = max(least, -np.inf if proof.bound is None else proof.bound)
    status = Status.OPTIMAL if objective - bound <= 1e-9 * max(1.0, objective) else Status.FEASIBLE
    proof = replace(
        proof,
        status=status,
        objective=objective,
        bound=bound if np.isfinite(bound) else None,
        within=within if bound > least else None,
    )
    return Decision(plan=plan_of(problem, kept, partition, copies, shared), proof=proof)


def bound(
    problem: Multicast,
    *,
    options: Options = Options(),
    previous: Decision[Channels] | None = None,  # noqa: ARG001
) -> Decision[Channels]:
    """No plan: what no plan with partitions in turn can beat, whatever edge switches share.

    The better of two bounds: the linear relaxation of which groups core and aggregation tables hold, and
    what tables of edge switches cost at least.
    """
    solution = backends.solve(upper_relaxation(problem), options)
    least = least_mbps(problem)
    known = least if solution.bound is None else max(least, solution.bound)
    proof = Proof(
        status=Status.UNDECIDED,
        bound=known,
        metric=METRIC,
        within=f"{IN_TURN}, entries shared by edge switches" if known > least else None,
        backend=solution.backend,
    )
    return Decision(plan=None, proof=proof)


def upper_relaxation(problem: Multicast) -> LinearProgram:
    """The program of `bound`: groups may be in tables in part, and edge switches hold all."""
    copies = problem.aggregation_copies
    found = select.room(problem, select.in_turn(problem, copies), copies, layers=("core", "aggregation"))
    return replace(select.model(problem, found), integer=None)


def model(problem: Multicast, *, choose: Choose = "value") -> LinearProgram:  # noqa: ARG001
    """The program of `partitioned`."""
    copies = problem.aggregation_copies
    return select.model(problem, select.room(problem, select.in_turn(problem, copies), copies))


def least_mbps(problem: Multicast) -> float:
    """No plan has less host traffic: at each edge switch all but a table of port sets cost extra.

    A group is then either carried to one port too many, or by unicast, which adds its rate for all
    members but one; that is shared out evenly over its edge switches.
    """
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    reached = problem.edges_in_pod.sum(axis=1)
    weight = rate * np.minimum(1.0, (members - 1) / reached)
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    extra = sum(
        channels.least_extra_mbps(masks[a:b], weight[group[a:b]], size)
        for size, (a, b) in zip(problem.free("edge").tolist(), pairwise(start), strict=True)
        if b - a > size
    )
    return float(rate @ (1 + members)) + extra


def _chosen(
    problem: Multicast, layers: tuple[str, ...], options: Options
) -> tuple[NDArray[np.bool_] | None, Proof]:
    """(G,) the groups that get entries where only the tables of `layers` are short, and what is proven."""
    copies = problem.aggregation_copies
    found = select.room(problem, select.in_turn(problem, copies), copies, layers=layers)
    if select.fit(found):
        least = float(problem.rate_mbps @ (1 + problem.member_counts))
        proof = Proof(status=Status.OPTIMAL, objective=least, bound=least, metric=METRIC)
        return np.ones(len(problem.groups), dtype=bool), proof
    solution = backends.solve(select.model(problem, found), options)
    proof = Proof(
        status=solution.status,
        objective=solution.objective,
        bound=solution.bound,
        metric=METRIC,
        backend=solution.backend,
        reasons=solution.reasons,
    )
    return (None if solution.x is None else solution.x > 0.5), proof


def _first_come(problem: Multicast, *, copies: int) -> Decision[Channels]:
    partition = select.in_turn(problem, copies)
    kept = select.by_arrival(select.room(problem, partition, copies))
    worth = select.unicast_mbps(problem) - float(select.saved_mbps(problem)[kept].sum())
    proof = Proof(status=Status.FEASIBLE, objective=worth, metric=METRIC, seconds=None)
    return Decision(plan=plan_of(problem, kept, partition, copies, nothing_shared()), proof=proof)


def _shared(
    problem: Multicast,
    stored: Stored,
    method: str,
    everywhere: bool,
    rounds: int,
    delta: float,
    spare: int,
    port_mbps: float | None,
    keep: float,
    options: Options,
    previous: Channels | None,
) -> tuple[pd.DataFrame, float]:
    """The table meta_groups of the switches that overflow, and the extra traffic at all of them."""
    free, count = problem.free(stored.layer), np.diff(stored.start)
    ports = problem.ports
    if stored.layer == "aggregation":
        ports = int(problem.wiring.edge_in_pod.max()) + 1
    over = np.flatnonzero((count > free) | (everywhere & (count > 0)))
    rates = problem.rate_mbps[stored.group]
    # switches that store the same groups do the same: once is enough
    alike: dict[bytes, int] = {}
    first_of = np.arange(len(count))
    if stored.layer == "aggregation":
        for switch in over.tolist():
            rows = slice(stored.start[switch], stored.start[switch + 1])
            key = stored.group[rows].tobytes() + stored.ports[rows].tobytes() + free[switch].tobytes()
            first_of[switch] = alike.setdefault(key, switch)
    meta = np.zeros(len(stored.group), dtype=np.int64)
    extra = 0.0
    mine = over[first_of[over] == over]
    congestion = channels.LINEAR if port_mbps is None else channels.Congestion.of_ports(port_mbps)
    sizes = free.tolist()
    before = entries_before(problem, stored, previous)

    def one(switch: int) -> None:
        rows = slice(int(stored.start[switch]), int(stored.start[switch + 1]))
        masks, size = stored.ports[rows], sizes[switch]
        found = channels.dedupe(masks)
        if found.max() >= size or (method == "algorithm2" and size >= ports + 2):
            background = None
            if not congestion.is_linear and stored.layer == "edge":
                background = problem.port_background_mbps[switch]
            old = before[rows] if before is not None and method == "agglomerative" else None
            if old is not None and (old >= 0).any():
                meta[rows] = incremental.kept(masks, rates[rows], old, table_size=size, keep=keep)
                return
            found = _merged(
                masks,
                rates[rows],
                method,
                options,
                partial(
                    algorithm2.aggregate,
                    table_size=size,
                    ports=ports,
                    delta=delta,
                    spare=spare,
                    congestion=congestion,
                    background_mbps=background,
                ),
                size,
                rounds,
            )
        meta[rows] = found

    channels.side_by_side(one, mine.tolist(), threads=1 if method == "optimum" else options.threads)
    shares = np.zeros(len(count), dtype=bool)
    shares[over] = True
    for switch in over.tolist():
        rows = slice(int(stored.start[switch]), int(stored.start[switch + 1]))
        if first_of[switch] != switch:
            twin = int(first_of[switch])
            meta[rows] = meta[int(stored.start[twin]) : int(stored.start[twin + 1])]
        extra += channels.extra_mbps(stored.ports[rows], rates[rows], meta[rows])
    frame = shared_entries(problem, stored, np.repeat(shares, count), meta)
    return frame, extra


def entries_before(problem: Multicast, stored: Stored, previous: Channels | None) -> NDArray[np.int64] | None:
    """The shared entry that each pair of switch and group had in the previous plan, -1 for none."""
    if previous is None or not len(previous.meta_groups):
        return None
    names = problem.wiring.edges if stored.layer == "edge" else problem.wiring.aggregations
    switch = rows_of(names, previous.meta_groups["switch"])
    group = rows_of(problem.group_names, previous.meta_groups["group"])
    here = (switch >= 0) & (group >= 0)
    old = switch[here] * len(problem.groups) + group[here]
    now = stored.switch * len(problem.groups) + stored.group
    before = np.full(len(now), -1, dtype=np.int64)
    if len(now):
        place = np.minimum(np.searchsorted(now, old), len(now) - 1)
        same = now[place] == old
        before[place[same]] = previous.meta_groups["meta_group"].to_numpy(np.int64)[here][same]
    return before


def _merged(
    masks: channels.Masks,
    rates: channels.Rates,
    method: str,
    options: Options,
    as_printed: partial[channels.Meta],
    size: int,
    rounds: int,
) -> channels.Meta:
    if method == "algorithm2":
        return as_printed(masks, rates)
    if method == "optimum":
        meta, _ = exact.optimum(masks, rates, table_size=size, options=options)
        if meta is not None:
            return meta  # else the time was up before any plan: the heuristic's stands
    return agglomerate.aggregate(masks, rates, table_size=size, rounds=rounds)


def shared_entries(
    problem: Multicast, stored: Stored, here: NDArray[np.bool_], meta: NDArray[np.int64]
) -> pd.DataFrame:
    """The table meta_groups of one layer: the pairs that are `here`, with the entries `meta`."""
    names = problem.wiring.edges if stored.layer == "edge" else problem.wiring.aggregations
    switch = pd.Categorical.from_codes(stored.switch[here], names)
    groups = pd.Categorical.from_codes(stored.group[here], problem.group_names)
    frame = pd.DataFrame({"switch": switch, "meta_group": meta[here].astype(float), "group": groups})
    # the switches of all layers are categories, so that two layers can be put together
    return frame.astype({"switch": pd.CategoricalDtype(problem.wiring.switches)})


def nothing_shared() -> pd.DataFrame:
    """The table meta_groups where there are none."""
    return pd.DataFrame(
        {"switch": pd.Series(dtype=str), "meta_group": pd.Series(dtype=float), "group": pd.Series(dtype=str)}
    )


def plan_of(
    problem: Multicast,
    kept: NDArray[np.bool_],
    partition: NDArray[np.int64],
    copies: int,
    shared: pd.DataFrame,
) -> Channels:
    """The plan whose groups `kept` (G,) have entries: in `partition` (G,), of which a pod has `copies`."""
    names = pd.Categorical.from_codes(np.flatnonzero(kept), problem.group_names)
    partitions = pd.DataFrame(
        {"group": names, "partition": partition[kept].astype(float), "copies": float(copies)}
    )
    entries = counted(problem, partitions, shared)
    return Channels(partitions=partitions, meta_groups=shared, entries=entries)


DESIGNS: Final = (
    Design(
        name="partitioned_aggregated",
        decide=partitioned_aggregated,
        sees=sees.told,
        exchange=exchange.central,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as of partitioned; the controller also tells the switches above and the hosts or switches "
        "below those that share entries which addresses to rewrite",
        source="Scaling IP Multicast on Datacenter Topologies, sections 3.1 and 3.2",
    ),
    Design(
        name="partitioned",
        decide=partitioned,
        sees=sees.told,
        exchange=exchange.central,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="hosts tell a controller the groups they join and what they send; it gives each switch its "
        "part of the addresses once, each new group an address, and switches their entries",
        source="Scaling IP Multicast on Datacenter Topologies, section 3.1",
        model=model,
    ),
    Design(
        name="per_switch",
        decide=per_switch,
        exchange=exchange.joins,
        mechanism=Mechanism.NONE,
        messages="switches forward joins and leaves up the tree",
        source="Scaling IP Multicast on Datacenter Topologies, section 2",
    ),
    Design(
        name="bound",
        decide=bound,
        sees=sees.told,
        exchange=exchange.central,
        mechanism=Mechanism.TRANSPARENCY,
        messages="all groups and their members",
        source="linear relaxation; port sets that a table has no room for",
        model=upper_relaxation,
    ),
)
