"""The best links and routing together: relaxation with a bound, rounding, exchange of links, exact search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.contract.ranking import EQUAL as SAME_RANK
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import OPTIMALITY, STATED_GAP
from planner_models.topology.designs.decision import Proven, decide, route, route_servable
from planner_models.topology.designs.fixed_rules import (
    approach,
    count_made,
    fill_ports,
    match_demand,
    match_heaviest,
    round_links,
)
from planner_models.topology.designs.joint_program import (
    JointProgram,
    Paths,
    Relaxed,
    every_path,
    port_bound,
    solve,
    used_paths,
)
from planner_models.topology.designs.shorter_routes import shorten, transit_of, transit_program
from planner_models.topology.plan.balance import Routing, balance, loads_of
from planner_models.topology.plan.plan import Topology
from planner_models.topology.plan.steps import LinkMoves
from planner_models.topology.problem.generators import mesh
from planner_models.topology.problem.problem import Fabric

ExactBlocks = Annotated[
    int,
    Field(
        ge=0,
        le=64,
        description="blocks up to which an integer program proves the optimum; beyond, rounding of the "
        "relaxation with its bound",
    ),
]
RELAXATION_GAP: Final = STATED_GAP
"""Relative gap at which column generation of the relaxation ends, where the plan is not proven optimal."""
EXCHANGES: Final = 30
"""Rounds of exchanges of links."""
MOST_EXCHANGED: Final = 24
"""Links that a round exchanges at most, to begin with."""
FIRST_SHARE: Final = 0.4
"""Of a time limit, after which the routing over the first links is not improved."""
RULES_SHARE: Final = 0.6
"""The same of the links of rules."""
PATHS_SHARE: Final = 0.7
"""The same of the paths that the relaxation starts from."""
EQUAL: Final = OPTIMALITY
"""Relative gap at which the search ends for many blocks."""


@route_servable
def plan(
    problem: Fabric, *, exact_blocks: ExactBlocks = 6, options: Options = Options()
) -> Decision[Topology]:
    """Plan links and routing together for the largest demand scale, with a proven bound.

    The relaxation over fractional links is solved by column generation over transit paths and gives the
    bound; its links are rounded within ports and moves, demand is routed over them, and links are exchanged
    where prices say so. For few blocks integer programs prove the optimum, and then the least stretch at its
    demand scale. Steps that begin after their share of a time limit are left out.
    """
    deadline = Deadline.of(options)

    def rest() -> Options:
        return replace(deadline.options(options, minimum_s=0.01), service="best")

    bound = port_bound(problem)
    if bound <= 0:
        return decide(
            problem, approach(problem, mesh(problem.ports)), options=options, proven=Proven(bound=0.0)
        )
    spread = _spread(problem)
    best = _Incumbent.choose(
        problem, [approach(problem, round_links(problem, spread))], deadline.share(FIRST_SHARE)
    )
    if not deadline.share(RULES_SHARE).is_over:
        best = best.improve_by(_Incumbent.choose(problem, _rules(problem), deadline.share(RULES_SHARE)))
    backend = None
    if not best.reaches(bound, options):
        if not deadline.share(RULES_SHARE).is_over:
            fraction = balance(
                problem.demand_mbps, spread * problem.link_mbps, deadline=deadline.share(PATHS_SHARE)
            )
            relaxed = solve(
                JointProgram(problem=problem), used_paths(fraction.shares), rest(), gap=RELAXATION_GAP
            )
            backend = relaxed.backend
            bound = min(bound, np.inf if relaxed.bound is None else relaxed.bound)
            best = _round_relaxation(problem, best, relaxed, deadline)
            progress.report("demand_scale", best.scale, bound)
        best = _exchange(problem, best, lambda: bound, rest, options)
    least_transit = None
    if len(problem.blocks) <= exact_blocks:
        if not best.reaches(bound, options, SAME_RANK):
            best, bound, backend = _search(problem, best, bound, rest())
        if best.scale > 0 and best.reaches(bound, options, SAME_RANK):
            best, least_transit, backend = _search_shortest(problem, best, rest())
    return decide(
        problem,
        best.links,
        best.shortest,
        options=options,
        proven=Proven(
            bound=max(bound, 0.0),
            least_transit=least_transit,
            backend=backend,
            is_cut=deadline.is_over,
        ),
    )


def build_model(problem: Fabric) -> LinearProgram:
    """Return the integer program over links and all transit paths."""
    program = JointProgram(problem=problem)
    return program.build(every_path(problem), integer=True).describe(
        "the factor by which all demands can grow at once, in units of the bound by ports",
        metric="demand_scale",
        scale=program.unit,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Incumbent:
    """The best (n, n) links so far, and demand routed over them."""

    links: Ints
    routing: Routing

    problem: Fabric

    @property
    def scale(self) -> float:
        return self.routing.scale

    @cached_property
    def shortest(self) -> Routing:
        """The routing with the same demand scale, and less transit."""
        return shorten(self.problem, self.links, self.routing)

    @classmethod
    def of(
        cls, problem: Fabric, links: Ints, routing: Routing | None = None, deadline: Deadline = NEVER
    ) -> _Incumbent:
        """Return an incumbent of (n, n) links; where `routing` is None it is found."""
        routing = route(problem, links, deadline=deadline) if routing is None else routing
        return cls(problem=problem, links=links, routing=routing)

    @classmethod
    def choose(cls, problem: Fabric, candidates: list[Ints], deadline: Deadline = NEVER) -> _Incumbent:
        """Return the candidate with the largest demand scale, of equal ones that with the least stretch.

        After the first one, those whose turn comes after the deadline are left out.
        """
        best = cls.of(problem, candidates[0], deadline=deadline)
        for links in candidates[1:]:
            if deadline.is_over:
                break
            best = best.improve_by(cls.of(problem, links, deadline=deadline))
        return best

    def improve_by(self, other: _Incumbent) -> _Incumbent:
        """Return the better of the two, by the ranks of the headline."""
        if abs(other.scale - self.scale) > SAME_RANK * max(other.scale, self.scale):
            return other if other.scale > self.scale else self
        current_transit, others = (
            transit_of(self.problem, incumbent.shortest.shares) for incumbent in (self, other)
        )
        return other if others < current_transit else self

    def reaches(self, bound: float, options: Options, within: float = EQUAL) -> bool:
        """Return whether the incumbent is within the gap that is wanted."""
        return bound - self.scale <= (options.gap or within) * bound


def _rules(problem: Fabric) -> list[Ints]:
    """Return the links of the other designs: the optimum is never worse than any of them."""
    goals = [mesh(problem.ports), match_demand(problem), match_heaviest(problem)]
    present = [] if problem.present is None else [problem.present]
    return [approach(problem, goal) for goal in goals] + present


def _spread(problem: Fabric) -> Floats:
    """Return (n, n) fractional links in proportion to demand, mixed with today's as far as moves allow."""
    rate = np.where(problem.link_mbps > 0, problem.link_mbps, 1.0)
    links = fill_ports(problem, (problem.demand_mbps + problem.demand_mbps.T) / rate)
    present, limit = problem.present, problem.move_limit
    if present is None or limit is None:
        return links
    made = float(np.maximum(links - present, 0.0).sum()) / 2
    share = min(1.0, limit / made) if made > 0 else 1.0
    return present + share * (links - present)


def _round_relaxation(problem: Fabric, best: _Incumbent, relaxed: Relaxed, deadline: Deadline) -> _Incumbent:
    """Return the better of the incumbent and the relaxation's links, rounded."""
    if relaxed.scale is None:
        return best
    rounded = round_links(problem, relaxed.links)
    routing = route(problem, rounded, start=relaxed.shares, deadline=deadline)
    best = best.improve_by(_Incumbent.of(problem, rounded, routing))
    return best.improve_by(_Incumbent.choose(problem, [rounded], deadline))


def _exchange(
    problem: Fabric,
    best: _Incumbent,
    bound: Callable[[], float],
    remaining_options: Callable[[], Options],
    options: Options,
) -> _Incumbent:
    """Return the incumbent after exchanges of links that make its largest utilization smaller.

    Links are moved from pairs with the most residual capacity to those that are full: many at once, and half
    as many whenever that does not help.
    """
    size = MOST_EXCHANGED
    for _ in range(EXCHANGES):
        remaining_s = remaining_options().time_limit_s
        if best.reaches(bound(), options) or size < 1 or (remaining_s is not None and remaining_s <= 0.01):
            break
        links = _swap(problem, best, size)
        if links is None:
            size //= 2
            continue
        tried = _Incumbent.of(
            problem,
            links,
            route(problem, links, start=best.routing.shares, deadline=Deadline.after(remaining_s)),
        )
        if tried.scale > best.scale * (1 + 1e-9):
            best = tried
        else:
            size //= 2
    return best


def _move_links(moves: LinkMoves, removals: Sequence[int], pair: int, links: int) -> None:
    """Remove links of some pairs and add as many to each of them to another pair; undo it for -1."""
    for removed in removals:
        moves.change(removed, -links)
    moves.change(pair, links)


def _swap(problem: Fabric, best: _Incumbent, size: int) -> Ints | None:
    """Return the links with up to `size` of them moved to full pairs of blocks; None where none can be."""
    moves = LinkMoves(problem, best.links)
    pairs = moves.one, moves.other
    load = loads_of(best.routing.shares * problem.demand_mbps[:, :, None]) * best.scale
    rate = np.where(problem.link_mbps > 0, problem.link_mbps, 1.0)
    spare = best.links[pairs] - (np.maximum(load, load.T) / rate)[pairs]
    direct = (np.maximum(problem.demand_mbps, problem.demand_mbps.T) * best.scale / rate)[pairs]
    want = np.maximum(direct - best.links[pairs], -spare)
    limit = np.inf if problem.move_limit is None else problem.move_limit
    anyone, made = np.ones(len(spare), dtype=bool), 0
    for pair in np.argsort(-want, kind="stable").tolist():
        if made == size:
            break
        removals = moves.find_removals(pair, anyone, spare) if direct[pair] > 0 else None
        if removals is None or (removals and spare[removals].sum() <= 0):
            continue
        _move_links(moves, removals, pair, 1)
        if count_made(problem, moves.to_matrix()) > limit:
            _move_links(moves, removals, pair, -1)
            continue
        spare[removals] -= 1
        made += 1
    return moves.to_matrix() if made else None


def _search(
    problem: Fabric, best: _Incumbent, bound: float, options: Options
) -> tuple[_Incumbent, float, str | None]:
    """Return the best incumbent, bound and backend of the integer program over all paths."""
    program = JointProgram(problem=problem)
    paths: Paths = every_path(problem)
    algorithm = replace(options, algorithm="auto", gap=options.gap or SAME_RANK)
    solution = backends.solve(program.build(paths, integer=True), algorithm)
    if solution.x is not None:
        links = np.round(program.read(solution.x, paths)[0]).astype(np.int64)
        best = best.improve_by(_Incumbent.choose(problem, [links]))
    if solution.bound is not None:
        bound = min(bound, solution.bound * program.unit)
    elif solution.status is Status.INFEASIBLE:
        bound = best.scale
    return best, bound, solution.backend


def _search_shortest(
    problem: Fabric, best: _Incumbent, options: Options
) -> tuple[_Incumbent, float | None, str | None]:
    """Return the incumbent with less transit at the same demand scale, a bound of it, and the backend.

    The bound is the least traffic by transit blocks of all plans with that demand scale, Mbit/s; None for
    unknown.
    """
    program = JointProgram(problem=problem)
    paths: Paths = every_path(problem)
    scale = best.scale * (1 - SAME_RANK)
    algorithm = replace(options, algorithm="auto", gap=options.gap or SAME_RANK)
    solution = backends.solve(transit_program(program, paths, scale, integer=True), algorithm)
    if solution.x is not None:
        links = np.round(program.read(solution.x, paths)[0]).astype(np.int64)
        best = best.improve_by(_Incumbent.choose(problem, [links]))
    if solution.bound is None:
        return best, None, solution.backend
    return best, solution.bound * float(problem.link_mbps.max()) / scale, solution.backend
