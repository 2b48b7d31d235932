"""Byzantine agreement in rounds: n = 3t + 1 members at sites apart, as near to each other as can be.

A round lasts as long as the slowest message between two members, so that the longest round-trip time among
them is what a place costs. It is minimized exactly: for a limit of the time, members need a clique among the
sites that are within it, and the limit is searched by bisection over the times that occur.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible, infeasible, judged
from planner_models.membership.designs.decision import SAFE, conclude
from planner_models.membership.plan.evaluation import decision_ms, round_ms
from planner_models.membership.plan.plan import MembershipPlan, Placement
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.schema import KINDS, MAX_MEMBERS, ROUND
from planner_models.membership.protocols.agreement import ROUNDS

Apart = Literal["automatic", "host", "rack", "zone", "region", "provider"]
SCOPE: Final = "a member in each"
LEAST_MS: Final = 1e-3
Liars = Annotated[
    int | None,
    Field(ge=0, le=15, description="members that do lie in the run; default: none, the usual case"),
]
ApartBy = Annotated[
    Apart,
    Field(
        description="kind of sites of which each has one member at most; automatic: the largest that has room"
    ),
]


def plan_psl(
    problem: Membership, *, liars: Liars = None, apart: ApartBy = "automatic", options: Options = Options()
) -> Decision[MembershipPlan]:
    """Agree in t + 1 rounds however few members lie, with trees of values.

    source  Pease, Shostak and Lamport 1980
    """
    return _plan(problem, "psl", liars, apart, options)


def plan_bgp(
    problem: Membership, *, liars: Liars = None, apart: ApartBy = "automatic", options: Options = Options()
) -> Decision[MembershipPlan]:
    """Agree in min{f + 2, t + 1} rounds for f members that lie, with trees of values.

    source  Berman, Garay and Perry 1992
    """
    return _plan(problem, "bgp", liars, apart, options)


def plan_gm(
    problem: Membership, *, liars: Liars = None, apart: ApartBy = "automatic", options: Options = Options()
) -> Decision[MembershipPlan]:
    """Agree on a bit in min{f + 5, t + 1} rounds, with polynomial messages.

    source  Garay and Moses 1998
    """
    return _plan(problem, "gm", liars, apart, options)


def plan_early(
    problem: Membership, *, liars: Liars = None, apart: ApartBy = "automatic", options: Options = Options()
) -> Decision[MembershipPlan]:
    """Agree in min{f + 2, t + 1} rounds, with polynomial messages.

    source  Abraham and Dolev 2015, Theorem 1
    """
    return _plan(problem, "early", liars, apart, options)


def _plan(
    problem: Membership, protocol: str, liars: int | None, apart: Apart, options: Options
) -> Decision[MembershipPlan]:
    """Place the members of each service, and prove that none are nearer to each other."""
    deadline = Deadline.of(options)
    placements, bounds, reasons = {}, [], []
    for service in problem.service_list:
        search = AgreementSearch(problem, service, apart, deadline=deadline)
        members = search.run()
        if isinstance(members, str):
            reasons.append(f"{service.name}: {members}")
            continue
        faults = service.faults
        rounds = ROUNDS[protocol](min(liars or 0, faults), faults)
        placements[service.name] = place(problem, service, members, protocol, rounds)
        bounds.append(rounds * search.bound_ms / 2)
    if reasons:
        return Decision(plan=None, proof=infeasible(*reasons))
    decision = conclude(problem, placements, feasible(), guarantees=SAFE, options=options)
    if decision.plan is None:
        return decision
    longest = max(decision_ms(problem, placement) for placement in placements.values())
    proof = judged(
        "min",
        longest,
        min(max(bounds), longest),
        metric="commit_ms",
        bound_scope=f"{SCOPE} {search.apart}",
        is_cut=deadline.is_over,
    )
    return Decision(plan=decision.plan, proof=proof, guarantees=SAFE)


def place(
    problem: Membership, service: Service, members: dict[int, int], protocol: str, rounds: int
) -> Placement:
    """Return the placement of members that agree in rounds; the one nearest to the others proposes."""
    numbers = problem.leaf_number
    sites = sorted(members)
    rtt = problem.delay_matrix.rtt_ms[np.ix_(numbers[sites], numbers[sites])]
    size = sum(members.values())
    length_s = max(round_ms(problem, members), LEAST_MS) / 1e3
    return Placement(
        members=members,
        managers={},
        leader=sites[int(rtt.max(axis=1).argmin())],
        rule=protocol,
        quorum=(size + service.faults) // 2 + 1,
        kind=ROUND,
        interval_s=length_s,
        timeout_s=length_s,
        rounds=rounds,
    )


class AgreementSearch:
    """Search of the members of one service with the least longest round-trip time."""

    def __init__(self, problem: Membership, service: Service, apart: Apart, *, deadline: Deadline) -> None:
        """Prepare a search."""
        self.problem, self.service, self.deadline = problem, service, deadline
        self.size = max(service.size if service.is_byzantine else 0, 3 * service.faults + 1)
        self.apart = self._select_kind(apart)
        self.bound_ms = 0.0

    def _select_kind(self, apart: Apart) -> str:
        """Return the kind of sites with a member each; the largest of which there are enough."""
        if apart != "automatic":
            return apart
        for kind in reversed(KINDS):
            if len(self._by_site(kind)) >= self.size:
                return kind
        return KINDS[0]

    def _by_site(self, kind: str) -> dict[int, list[int]]:
        """Return the leaves that may have members, by the site of a kind; each host is one by itself."""
        tree, problem = self.problem.tree, self.problem
        by_site: dict[int, list[int]] = {}
        for leaf in problem.leaves.tolist():
            if tree.capacity[leaf] and not problem.is_lost[leaf] and not problem.is_witness[leaf]:
                if kind == KINDS[0]:
                    for number in range(min(int(tree.capacity[leaf]), self.size)):
                        by_site[leaf * MAX_MEMBERS + number] = [leaf]
                else:
                    by_site.setdefault(problem.site_above(leaf, kind), []).append(leaf)
        return by_site

    def run(self) -> dict[int, int] | str:
        """Return the members by leaf, or the reason why there are none; `bound_ms` is then a bound."""
        groups = self._by_site(self.apart)
        if self.size > MAX_MEMBERS:
            return f"{self.size} members are needed (n > 3t), there must be at most {MAX_MEMBERS}"
        if len(groups) < self.size:
            return f"{self.size} members are needed (n > 3t), there are {len(groups)} {self.apart}s for them"
        leaves, site = self._candidates(groups)
        numbers = self.problem.leaf_number[leaves]
        rtt = self.problem.delay_matrix.rtt_ms[np.ix_(numbers, numbers)]
        rtt = np.where(site[:, None] == site[None], np.inf, rtt)
        rows = self._nearest(rtt)
        members: dict[int, int] = {}
        for leaf in leaves[rows].tolist():
            members[leaf] = members.get(leaf, 0) + 1
        return members

    def _candidates(self, groups: dict[int, list[int]]) -> tuple[Ints, Ints]:
        """Return the leaves that may have a member, with the site of each; of leaves alike the cheapest."""
        leaves, sites = [], []
        price, numbers = self.problem.price, self.problem.leaf_number
        rtt = self.problem.delay_matrix.rtt_ms
        for site, members in groups.items():
            alike: dict[bytes, int] = {}
            for leaf in members:
                others = np.delete(rtt[numbers[leaf]], numbers[members])
                key = others.tobytes()
                if key not in alike or price[leaf] < price[alike[key]]:
                    alike[key] = leaf
            leaves += list(alike.values())
            sites += [site] * len(alike)
        return np.array(leaves, dtype=np.int64), np.array(sites, dtype=np.int64)

    def _nearest(self, rtt: Floats) -> list[int]:
        """Return rows of candidates with the least longest time between two of them."""
        times = np.unique(rtt[np.isfinite(rtt)])
        low, high = 0, len(times) - 1
        best = find_clique(rtt <= times[high] if len(times) else rtt < 0, self.size, self.deadline)
        best = best if best is not None else list(range(self.size))
        while low < high and self.size > 1:
            middle = (low + high) // 2
            clique = find_clique(rtt <= times[middle], self.size, self.deadline)
            if clique is not None:
                best, high = clique, middle
            elif self.deadline.is_over:
                break
            else:
                low = middle + 1
        self.bound_ms = float(times[low]) if len(times) and self.size > 1 else 0.0
        return best


def find_clique(near: Bools, size: int, deadline: Deadline) -> list[int] | None:
    """Return rows that are all near each other, so many; None for none, or where time is over.

    Rows with too few others near are dropped again and again; the others are coloured greedily in a branch
    and bound, in which as many colours bound the size of a clique.
    """
    near = near.copy()
    np.fill_diagonal(near, val=False)
    rows = np.arange(len(near))
    while True:
        is_kept = near[np.ix_(rows, rows)].sum(axis=1) >= size - 1
        if is_kept.all():
            break
        rows = rows[is_kept]
    if len(rows) < size:
        return None
    sets = [set(np.flatnonzero(row).tolist()) for row in near]
    return _extend([], rows.tolist(), sets, size, deadline)


def _extend(
    clique: list[int], open_rows: list[int], near: list[set[int]], size: int, deadline: Deadline
) -> list[int] | None:
    """Return a clique that contains some rows and further ones of those that are open."""
    if len(clique) == size:
        return clique
    if deadline.is_over:
        return None
    colours = _colour(open_rows, near)
    for position in range(len(colours) - 1, -1, -1):
        row, colour = colours[position]
        if len(clique) + colour < size:
            return None
        remaining = [other for other, _ in colours[:position] if other in near[row]]
        result = _extend([*clique, row], remaining, near, size, deadline)
        if result is not None:
            return result
    return None


def _colour(rows: list[int], near: list[set[int]]) -> list[tuple[int, int]]:
    """Return rows with colours from 1 on, ascending: rows of one colour are not near each other."""
    classes: list[list[int]] = []
    for row in rows:
        for members in classes:
            if near[row].isdisjoint(members):
                members.append(row)
                break
        else:
            classes.append([row])
    return [(row, colour) for colour, members in enumerate(classes, start=1) for row in members]
