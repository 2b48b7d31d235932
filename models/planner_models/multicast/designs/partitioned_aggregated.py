"""Partitioned addresses with shared entries: switches whose tables overflow merge groups into meta-groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast.designs.bound import edge_table_bound_mbps
from planner_models.multicast.designs.channelization import (
    agglomerative_clustering,
    algorithm2,
    incremental,
    p_median,
)
from planner_models.multicast.designs.partitioned import BOUND_SCOPE, select_groups
from planner_models.multicast.plan.address_layouts import choose_layout
from planner_models.multicast.plan.meta_groups import (
    LINEAR,
    Congestion,
    Masks,
    extra_mbps,
    merge_equal_sets,
    run_in_threads,
)
from planner_models.multicast.plan.plan import Channels, build_plan, round_robin_partitions
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    build_meta_groups,
    groups_at,
    previous_entries,
)
from planner_models.multicast.problem.capacity_equations import list_layouts
from planner_models.multicast.problem.problem import LAYERS, Multicast

Method = Annotated[
    Literal["agglomerative", "algorithm2", "optimum"],
    Field(description="algorithm that shares entries; optimum: exact, for switches with few port sets"),
]
Share = Annotated[
    Literal["edge", "aggregation", "both"], Field(description="layers whose groups share entries")
]
Everywhere = Annotated[
    bool, Field(description="share at every such switch, not only where the table overflows")
]
Rounds = Annotated[
    int, Field(ge=0, description="of agglomerative: rounds of the search for better shared entries")
]
Delta = Annotated[
    float, Field(ge=0, description="of algorithm2: open a new entry where sharing adds this share of cost")
]
Spare = Annotated[
    int, Field(ge=0, description="of algorithm2: groups with members at all ports but so many go to all")
]
Keep = Annotated[
    float,
    Field(ge=0, description="after a previous plan: share anew where that saves this share of traffic"),
]
PortMbps = Annotated[
    float | None,
    Field(gt=0, description="of algorithm2: speed of ports, for congestion that rises with load"),
]


def partition_and_share(
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
    """Partition addresses above, and share entries below, at switches whose tables overflow.

    Groups that the other layers' tables cannot hold go by unicast: those that save the least. The bound
    covers partitions given in turn, whatever switches of the layer share. Method `optimum` is exact at
    each switch for the groups chosen; where its time limit ends without a plan, the heuristic's is used.
    With a previous plan, agglomerative sharing starts from its entries (see `keep`).

    raises  InputError from `optimum` where a switch has too many different port sets, from
            `algorithm2` where a table is smaller than the ports and two, and for `port_mbps` with
            another method
    """
    if port_mbps is not None and method != "algorithm2":
        raise InputError(f"port_mbps: is for method algorithm2, this is {method}")
    copies = problem.aggregation_copies
    layers = {"edge": ("edge",), "aggregation": ("aggregation",), "both": ("aggregation", "edge")}[share]
    bound_scope = f"{BOUND_SCOPE}, entries shared by {' and '.join(layers)} switches"
    kept, proof = select_groups(problem, tuple(name for name in LAYERS if name not in layers), options)
    if kept is None or proof.objective is None:
        return Decision(plan=None, proof=replace(proof, bound_scope=bound_scope))
    sharing = _Sharing(
        method=method,
        everywhere=everywhere,
        rounds=rounds,
        delta=delta,
        spare=spare,
        congestion=LINEAR if port_mbps is None else Congestion.of_ports(port_mbps),
        keep=keep,
        options=options,
        previous=None if previous is None or previous.plan is None else previous.plan.meta_groups,
    )
    frames, extra = [], 0.0
    for layer in layers:
        stored = groups_at(layer, problem, kept, round_robin_partitions(problem, copies), copies)
        frame, layer_extra = _share_layer(problem, stored, sharing)
        frames.append(frame)
        extra += layer_extra if layer == "edge" else 0.0  # what edge switches drop reaches no host
    meta_groups = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    objective = proof.objective + extra
    least = edge_table_bound_mbps(problem) if "edge" in layers else -np.inf
    bound = max(least, -np.inf if proof.bound is None else proof.bound)
    status = Status.OPTIMAL if objective - bound <= 1e-9 * max(1.0, objective) else Status.FEASIBLE
    proof = replace(
        proof,
        status=status,
        objective=objective,
        bound=bound if np.isfinite(bound) else None,
        bound_scope=bound_scope if bound > least else None,
    )
    return Decision(plan=build_plan(problem, kept, copies, meta_groups=meta_groups), proof=proof)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sharing:
    """Parameters of `partition_and_share` for the switches of a layer.

    previous  the table meta_groups of the previous plan
    """

    method: str
    everywhere: bool
    rounds: int
    delta: float
    spare: int
    congestion: Congestion
    keep: float
    options: Options
    previous: pd.DataFrame | None

    def share(
        self, masks: Masks, rates: Floats, size: int, ports: int, old: Ints | None, background: Floats | None
    ) -> Ints:
        """Return the entry of each group of one switch with `size` entries.

        old         (groups,) entries of the previous plan, -1 for none
        background  (ports,) other traffic, for convex congestion
        """
        meta = merge_equal_sets(masks)
        if self.method == "algorithm2":
            if meta.max() < size < ports + 2:
                return meta
            return algorithm2.aggregate(
                masks,
                rates,
                table_size=size,
                ports=ports,
                delta=self.delta,
                spare=self.spare,
                congestion=self.congestion,
                background_mbps=background,
            )
        if meta.max() < size:
            return meta
        if self.method == "optimum":
            exact, _ = p_median.solve_exactly(masks, rates, table_size=size, options=self.options)
            if exact is not None:
                return exact  # else the time limit ended without a plan: the heuristic's is used
        elif old is not None and (old >= 0).any():
            return incremental.update_sharing(masks, rates, old, table_size=size, keep=self.keep)
        return agglomerative_clustering.aggregate(masks, rates, table_size=size, rounds=self.rounds)


def _share_layer(problem: Multicast, stored: StoredGroups, sharing: _Sharing) -> tuple[pd.DataFrame, float]:
    """Return the table meta_groups of the switches that overflow, and the extra traffic at all of them."""
    sizes, count = problem.free(stored.layer), np.diff(stored.start)
    is_edge = stored.layer == "edge"
    ports = problem.ports if is_edge else int(problem.wiring.edge_in_pod.max()) + 1
    over = np.flatnonzero((count > sizes) | (sharing.everywhere & (count > 0))).tolist()
    rates = problem.rate_mbps[stored.group]
    rows = [slice(a, b) for a, b in pairwise(stored.start.tolist())]
    # switches that store the same groups do the same: once is enough
    first_of = {switch: switch for switch in over}
    if not is_edge:
        twins: dict[bytes, int] = {}
        for switch in over:
            mine = rows[switch]
            key = stored.group[mine].tobytes() + stored.ports[mine].tobytes() + sizes[switch].tobytes()
            first_of[switch] = twins.setdefault(key, switch)
    meta = np.zeros(len(stored.group), dtype=np.int64)
    before = previous_entries(problem, stored, sharing.previous)

    def share_switch(switch: int) -> None:
        mine = rows[switch]
        background = None
        if is_edge and not sharing.congestion.is_linear:
            background = problem.port_background_mbps[switch]
        old = None if before is None else before[mine]
        meta[mine] = sharing.share(
            stored.ports[mine], rates[mine], int(sizes[switch]), ports, old, background
        )

    threads = 1 if sharing.method == "optimum" else sharing.options.threads
    run_in_threads(share_switch, [switch for switch in over if first_of[switch] == switch], threads=threads)
    extra = 0.0
    shares = np.zeros(len(count), dtype=bool)
    shares[over] = True
    for switch in over:
        mine = rows[switch]
        meta[mine] = meta[rows[first_of[switch]]]
        extra += extra_mbps(stored.ports[mine], rates[mine], meta[mine])
    return build_meta_groups(problem, stored, np.repeat(shares, count), meta), extra


Wish = Annotated[
    Literal["copies", "groups"],
    Field(description="copies: as many copies as fit; groups: the most free entries, with least_copies"),
]
Least = Annotated[
    int,
    Field(ge=1, description="smallest ra: one switch less may fail in each pod without loss"),
]


def choose_copies(
    problem: Multicast,
    *,
    wish: Wish = "copies",
    least_copies: Least = 1,
    options: Options = Options(),
    previous: Decision[Channels] | None = None,
) -> Decision[Channels]:
    """Choose n, rc and ra for the groups, then share entries as `partition_and_share` does.

    Where no layout holds all groups, choose the one with the fewest copies; trees that are no fat trees keep
    their layout.

    raises  InputError for more copies than a pod can have
    """
    if problem.is_tree:
        _require_copies(least_copies, problem.aggregation_copies)
    else:
        layouts = {layout.aggregation_copies: layout for layout in list_layouts(problem.k)}
        _require_copies(least_copies, max(layouts))
        chosen = choose_layout(problem, wish=wish, least_copies=least_copies).chosen
        if chosen is None:
            chosen = min(copies for copies in layouts if copies >= least_copies)
        if chosen != problem.aggregation_copies:
            problem = problem.with_layout(layouts[chosen])
    return partition_and_share(problem, options=options, previous=previous)


def _require_copies(least_copies: int, most: int) -> None:
    """Raise InputError for more copies than a pod can have."""
    if least_copies > most:
        raise InputError(f"least_copies is {least_copies}, a pod has at most {most} copies")
