"""Partitioned addresses with shared entries: switches with overflowing tables merge groups."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.multicast.designs import joint_bound, limited_changes
from planner_models.multicast.designs.channelization import algorithm2, local_search, p_median
from planner_models.multicast.designs.partitioned import (
    BOUND_SCOPE,
    METRIC,
    saved_mbps,
    select_groups,
    widen_bound,
)
from planner_models.multicast.designs.unicast_exchange import NO_ENTRY, EdgeTables, improve
from planner_models.multicast.plan.group_capacity import choose_layout
from planner_models.multicast.plan.meta_groups import (
    LINEAR,
    Congestion,
    Masks,
    merge_equal_sets,
    run_in_threads,
)
from planner_models.multicast.plan.plan import Channels, build_plan, round_robin_partitions
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    build_meta_groups,
    groups_at_aggregations,
    groups_at_edges,
    previous_entries,
    rank_keys,
)
from planner_models.multicast.plan.table_limits import TableLimits, build_limits, join_limits
from planner_models.multicast.problem.equations import list_layouts
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.problem import LAYERS, Multicast

MAX_ROUNDS: Final = 5  # of the search of edge switches
MAX_PAIRS_SEARCHED: Final = 100_000  # of edge switch and group; beyond, see `search_edges`
MAX_PAIRS_IMPROVED: Final = 5_000_000  # beyond, groups and shared entries are not searched at all
PROVEN_GAP: Final = ROUNDING
SHARING_LAYERS: Final = {"edge": ("edge",), "aggregation": ("aggregation",), "both": ("aggregation", "edge")}
"""Layers whose switches share entries, by parameter `share`."""

Method = Annotated[
    Literal["agglomerative", "algorithm2", "optimum"],
    Field(description="algorithm that shares entries; optimum: exact where switches have few port sets"),
]
Share = Annotated[
    Literal["edge", "aggregation", "both"], Field(description="layers whose groups share entries")
]
Everywhere = Annotated[
    bool, Field(description="share at every such switch, not only where the table overflows")
]
Rounds = Annotated[
    int | None,
    Field(
        ge=0,
        description="of agglomerative: rounds of the search for better shared entries; default: 1, and 0 "
        "where edge switches have more than 5 million groups in all",
    ),
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
MostChanges = Annotated[
    int | None,
    Field(
        ge=0,
        description="after a previous plan: most table entries to add and remove, once switches have "
        "adapted to joins and leaves",
    ),
]
AroundFailures = Annotated[
    bool,
    Field(
        description="groups that lose traffic by failures go to other partitions, or by unicast: least lost "
        "traffic first, then least host traffic"
    ),
]
WeighUnicast = Annotated[
    bool, Field(description="groups go by unicast where their shared entries at edge switches cost more")
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
    weigh_unicast: WeighUnicast = True,
    rounds: Rounds = None,
    delta: Delta = 0.2,
    spare: Spare = 0,
    port_mbps: PortMbps = None,
    keep: Keep = 0.0,
    most_changes: MostChanges = None,
    around_failures: AroundFailures = False,
    options: Options = Options(),
    previous: Decision[Channels] | None = None,
) -> Decision[Channels]:
    """Partition addresses above, and share entries below, at switches with overflowing tables.

    Groups that the other layers' tables cannot hold go by unicast, those that save the least; and groups
    whose shared entries at edge switches cost more traffic than unicast (see `weigh_unicast`), so that no
    plan of `partitioned` is better. The bound covers partitions given in turn, whatever switches of the
    layer share. Method `optimum` is exact where edge switches have few port sets; else, and where its time
    limit ends without a plan, heuristics make the plan. Algorithm 2 needs an entry for each port and two
    more; smaller tables are shared by agglomerative clustering. With a previous plan, agglomerative sharing
    starts from its entries (see `keep`); with `most_changes`, few entries of it change. Plans do not depend
    on failures unless they are to be made around them (`around_failures`). With service `all`, every group
    must have entries.

    raises  InputError for `port_mbps` with another method than algorithm2, or `most_changes` or
            `around_failures` where not only edge switches share entries
    """
    _require_shared_parameters(share, method, port_mbps, most_changes, around_failures=around_failures)
    deadline = Deadline.of(options)
    layers = SHARING_LAYERS[share]
    limits = _limits_of_others(problem, layers)
    selected, proof = select_groups(problem, limits, options)
    if selected is None:
        return Decision(plan=None, proof=proof)
    sharing = Sharing(
        problem=problem,
        method=method,
        everywhere=everywhere,
        rounds=int(len(problem.at_edge[1]) <= MAX_PAIRS_IMPROVED) if rounds is None else rounds,
        delta=delta,
        spare=spare,
        congestion=LINEAR if port_mbps is None else Congestion.of_ports(port_mbps),
        keep=keep,
        options=options,
        previous=None if previous is None or previous.plan is None else previous.plan.meta_groups,
    )
    frames, is_exact = [], False
    if "edge" in layers:
        weighs = weigh_unicast and sharing.congestion.is_linear and options.service == "best"
        exact = joint_bound.solve(problem, limits, options) if method == "optimum" and weighs else None
        is_exact = exact is not None
        tables, proof = exact or (search_edges(sharing, limits, selected, deadline, weighs=weighs), proof)
        selected, proof = tables.kept, replace(proof, objective=tables.total_mbps)
        frames.append(edge_frame(sharing, tables))
    if "aggregation" in layers:  # what edge switches drop reaches no host
        frames.append(_share_aggregations(sharing, selected))
    plan = build_plan(
        problem,
        selected,
        problem.aggregation_copies,
        meta_groups=frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True),
    )
    scope = f"{BOUND_SCOPE}, entries shared by {' and '.join(layers)} switches"
    proof = _judge(widen_bound(problem, proof, scope, deadline=deadline), is_exact=is_exact)
    changed = _change_plan(problem, plan, previous, most_changes, around_failures=around_failures)
    if changed is not plan:
        bound = None if around_failures else proof.bound  # partitions are not in turn any more
        proof = widen_bound(problem, replace(proof, bound=bound), scope, deadline=deadline)
        objective = limited_changes.host_traffic_mbps(problem, changed)
        proof = replace(proof, status=Status.FEASIBLE, objective=objective)
    return Decision(plan=changed, proof=proof)


def _require_shared_parameters(
    share: Share,
    method: Method,
    port_mbps: PortMbps,
    most_changes: MostChanges,
    *,
    around_failures: bool,
) -> None:
    """Raise InputError for a parameter that has no meaning beside another one."""
    if share != "edge" and (most_changes is not None or around_failures):
        name = "around_failures" if most_changes is None else "most_changes"
        raise InputError(f"{name}: is for entries shared by edge switches, share is {share}")
    if port_mbps is not None and method != "algorithm2":
        raise InputError(f"port_mbps: is for method algorithm2, this is {method}")


def _limits_of_others(problem: Multicast, layers: Sequence[str]) -> TableLimits:
    """Return the limits of tables where the switches of some layers, which share entries, have no limit."""
    copies = problem.aggregation_copies
    others = tuple(name for name in LAYERS if name not in layers)
    return join_limits(
        build_limits(problem, copies, layers=others),
        build_limits(problem, copies, layers=layers).without_free_entries(),
    )


def _share_aggregations(sharing: Sharing, selected: Bools) -> pd.DataFrame:
    """Return the shared entries of aggregation switches for the selected groups."""
    problem, copies = sharing.problem, sharing.problem.aggregation_copies
    stored = groups_at_aggregations(
        problem, round_robin_partitions(problem, copies), problem.distribution(copies), selected
    )
    meta, shares = sharing.share_layer(stored)
    return build_meta_groups(problem, stored, np.repeat(shares, np.diff(stored.start)), meta)


def _judge(proof: Proof, *, is_exact: bool) -> Proof:
    """Return the proof with its status: that of the exact search stays unless the bound is attained."""
    assert proof.bound is not None
    assert proof.objective is not None
    is_optimal = proof.objective - proof.bound <= PROVEN_GAP * max(1.0, proof.objective)
    if is_exact and not is_optimal:
        return proof
    return replace(proof, status=Status.OPTIMAL if is_optimal else Status.FEASIBLE)


def _change_plan(
    problem: Multicast,
    plan: Channels,
    previous: Decision[Channels] | None,
    most_changes: int | None,
    *,
    around_failures: bool,
) -> Channels:
    """Return the plan around failures, and within the limit of changes since the previous plan."""
    state = working_links(problem) if around_failures and problem.has_failures else None
    if state is not None:
        plan = limited_changes.avoid_failures(problem, plan, state)
    if most_changes is None or previous is None or previous.plan is None:
        return plan
    return limited_changes.change_plan(problem, previous.plan, plan, most_changes, state)


def search_edges(
    sharing: Sharing, limits: TableLimits, selected: Bools, deadline: Deadline, *, weighs: bool
) -> EdgeTables:
    """Return the entries of edge switches, and the groups that have some.

    weighs  whether groups go by unicast where their entries cost more: the search starts from the groups
            `selected`, and from those of `partitioned` where that could be better and there is time; a
            large problem is searched only there, and a very large one not at all
    """
    tables, problem = _start_search(sharing, limits, selected), sharing.problem
    if not weighs:
        return tables
    unshared = _unshared_bound_mbps(problem)
    pairs = len(tables.entry)
    if pairs <= MAX_PAIRS_SEARCHED or (pairs <= MAX_PAIRS_IMPROVED and tables.total_mbps > unshared):
        _improve_edges(sharing, tables, deadline)
    if tables.total_mbps > unshared and not deadline.is_over:
        own_limits = join_limits(limits, build_limits(problem, problem.aggregation_copies, layers=("edge",)))
        edge_selection, _ = select_groups(problem, own_limits, sharing.options)
        if edge_selection is not None:
            other = _start_search(sharing, limits, edge_selection)
            if pairs <= MAX_PAIRS_IMPROVED:
                _improve_edges(sharing, other, deadline)
            tables = min(tables, other, key=lambda each: each.total_mbps)
    return tables


def _unshared_bound_mbps(problem: Multicast) -> float:
    """Return a bound on host traffic without shared entries: each edge switch refuses as many as overflow.

    A refused group costs what it saves, divided evenly over its edge switches.
    """
    edge, group, _ = problem.at_edge
    cost = (saved_mbps(problem) / np.bincount(group))[group]
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    refused = 0.0
    for (first, last), free in zip(pairwise(start), problem.free("edge").tolist(), strict=True):
        over = last - first - max(free, 0)
        if over > 0:
            refused += float(np.partition(cost[first:last], over - 1)[:over].sum())
    lower = float(problem.rate_mbps @ (1 + problem.member_counts))
    return lower + refused


def _start_search(sharing: Sharing, limits: TableLimits, selected: Bools) -> EdgeTables:
    """Return the entries of edge switches for the groups `selected`."""
    problem = sharing.problem
    entry = np.full(len(problem.at_edge[1]), NO_ENTRY, dtype=np.int64)
    entry[selected[problem.at_edge[1]]] = sharing.share_layer(groups_at_edges(problem, selected))[0]
    return EdgeTables(problem=problem, limits=limits, kept=selected.copy(), entry=entry)


def _improve_edges(sharing: Sharing, tables: EdgeTables, deadline: Deadline) -> None:
    """Drop and add groups, and share anew at switches that changed, as long as that saves traffic."""
    # no host gets less than each member's copy
    lower = float(tables.problem.rate_mbps @ (1 + tables.problem.member_counts))
    for _ in range(MAX_ROUNDS):
        progress.report(METRIC, tables.total_mbps, lower)
        tables.changed.clear()
        if not improve(tables, deadline=deadline) or deadline.is_over:
            return
        changed = np.zeros(tables.problem.edge_count, dtype=bool)
        changed[list(tables.changed)] = True
        here = tables.kept[tables.group]
        fresh = tables.entry.copy()
        fresh[here] = sharing.share_layer(groups_at_edges(tables.problem, tables.kept), changed)[0]
        before, after = (tables.extra_mbps(entry) for entry in (tables.entry, fresh))
        better = changed & (after < before * (1 - 1e-9))
        tables.entry = np.where(better[tables.switch], fresh, tables.entry)


def edge_frame(sharing: Sharing, tables: EdgeTables) -> pd.DataFrame:
    """Return the table meta_groups of the edge switches where groups share entries."""
    stored = groups_at_edges(sharing.problem, tables.kept)
    entry = tables.entry[tables.kept[tables.group]]
    count = np.diff(stored.start)
    width = int(entry.max(initial=0)) + 1
    used, _ = rank_keys(stored.switch * width + entry, len(count) * width)
    used = np.bincount(used // width, minlength=len(count))
    shares = (used < count) | (sharing.everywhere & (count > 0))
    return build_meta_groups(sharing.problem, stored, np.repeat(shares, count), entry)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sharing:
    """Parameters of `partition_and_share` for the switches of a layer.

    previous  the table meta_groups of the previous plan
    """

    problem: Multicast
    method: str
    options: Options
    everywhere: bool = False
    rounds: int = 1
    delta: float = 0.2
    spare: int = 0
    congestion: Congestion = LINEAR
    keep: float = 0.0
    previous: pd.DataFrame | None = None

    def share(
        self, masks: Masks, rates: Floats, size: int, ports: int, old: Ints | None, background: Floats | None
    ) -> Ints:
        """Return the entry of each group of one switch with `size` entries.

        old         (groups,) entries of the previous plan, -1 for none
        background  (ports,) other traffic, for convex congestion
        """
        meta = merge_equal_sets(masks)
        if self.method == "algorithm2" and size >= ports + 2:
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
            with contextlib.suppress(InputError):  # too many unions: the heuristic's plan is used
                exact, _ = p_median.solve_exactly(masks, rates, table_size=size, options=self.options)
                if exact is not None:
                    return exact
        elif old is not None and (old >= 0).any():
            return algorithm2.update_sharing(masks, rates, old, table_size=size, keep=self.keep)
        return local_search.aggregate(masks, rates, table_size=size, rounds=self.rounds)

    def share_layer(self, stored: StoredGroups, switches: Bools | None = None) -> tuple[Ints, Bools]:
        """Return the entry of each stored group, (pairs,), and whether each switch shares entries.

        switches  those that share; default: all. Others, and those where all fit, have own entries
        """
        sizes, count = self.problem.free(stored.layer), np.diff(stored.start)
        is_edge = stored.layer == "edge"
        ports = self.problem.ports if is_edge else int(self.problem.wiring.edge_in_pod.max()) + 1
        shares = (count > sizes) | (self.everywhere & (count > 0))
        if switches is not None:
            shares &= switches
        rates = self.problem.rate_mbps[stored.group]
        rows = [slice(a, b) for a, b in pairwise(stored.start.tolist())]
        # switches that store the same groups do the same: once is enough
        twins: dict[bytes, int] = {}
        first_of = {}
        for switch in np.flatnonzero(shares).tolist():
            key = b"" if is_edge else stored.group[rows[switch]].tobytes() + sizes[switch].tobytes()
            first_of[switch] = switch if is_edge else twins.setdefault(key, switch)
        meta = np.arange(len(stored.group)) - np.repeat(stored.start[:-1], count)
        before = previous_entries(self.problem, stored, self.previous)

        def share_switch(switch: int) -> None:
            switch_rows = rows[switch]
            background = None
            if is_edge and not self.congestion.is_linear:
                background = self.problem.port_background_mbps[switch]
            old = None if before is None else before[switch_rows]
            size = int(sizes[switch])
            meta[switch_rows] = self.share(
                stored.ports[switch_rows], rates[switch_rows], size, ports, old, background
            )

        threads = 1 if self.method == "optimum" else self.options.threads
        run_in_threads(
            share_switch, [switch for switch, first in first_of.items() if switch == first], threads=threads
        )
        for switch, first in first_of.items():
            meta[rows[switch]] = meta[rows[first]]
        return meta, shares


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
        layout_copies = choose_layout(problem, wish=wish, least_copies=least_copies).chosen
        if layout_copies is None:
            layout_copies = min(copies for copies in layouts if copies >= least_copies)
        if layout_copies != problem.aggregation_copies:
            problem = problem.with_layout(layouts[layout_copies])
    return partition_and_share(problem, options=options, previous=previous)


def _require_copies(least_copies: int, limit: int) -> None:
    """Raise InputError for more copies than a pod can have."""
    if least_copies > limit:
        raise InputError(f"least_copies is {least_copies}, a pod has at most {limit} copies")
