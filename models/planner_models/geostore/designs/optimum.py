"""The least cost that keeps every goal, component by component of groups, with a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planner.contract.design import Decision
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of, infeasible, judged
from planner_models.geostore.designs.assembly import assemble, refuse_unreachable, with_shards
from planner_models.geostore.designs.fleet import Fleet
from planner_models.geostore.designs.placed import Placed
from planner_models.geostore.designs.placer import Placer
from planner_models.geostore.designs.whole_servers import bound_with_least_servers, close_regions
from planner_models.geostore.plan.metrics import measure
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.shards.designs import best as solve_shards
from planner_models.geostore.shards.keyspace import Keyspace
from planner_models.geostore.shards.sharding import Sharding

SCOPE: Final = (
    "plans whose writes enter at a replica that sends all copies, and whose requests keep all goals they can"
)
SMALL: Final = 100
"""Groups up to which the default gap is 0.01%; it is 0.1% for more."""


def place(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Place all groups at the least cost of a month that keeps limits, consistency, survival and order.

    Groups that depend on each other are placed together: a replica of one needs replicas of those that it
    depends on, and users read them in one datacenter. A group alone is solved by branch and bound with
    Lagrangian bounds, several by an integer program; bounds add up. Where servers are whole numbers, the
    bound counts them by use, or the least ones that some group needs, and regions are closed one by one while
    that saves money.
    """
    return place_with(problem, options, lambda keyspace: solve_shards(keyspace, options))


@refuse_unreachable
def place_with(
    problem: Geostore, options: Options, shard: Callable[[Keyspace], Sharding]
) -> Decision[StorePlan]:
    """Place all groups at the least cost, and the ranges of an ordered keyspace, if any, by `shard`."""
    placer = Placer(
        problem=problem, gap=gap_of(options, default=gap_for(problem)), deadline=Deadline.of(options)
    )
    placed = place_components(placer)
    if problem.is_limited.any():
        fleet = Fleet(placer, placed)
        plan = assemble(problem, fleet.solve())
        bound = fleet.bound
        if not _is_near(problem, plan, "penalized_usd", bound, placer):
            bound = max(bound, bound_with_least_servers(placer))
        return decide_by_cost(
            placer, with_shards(problem, plan, shard), options, metric="penalized_usd", bound=bound
        )

    def place_again(changed: Geostore) -> StorePlan | None:
        again = Placer(problem=changed, gap=placer.gap, deadline=placer.deadline)
        place_components(again)
        return None if again.missed else assemble(problem, again.groups)

    plan, bound = assemble(problem, placer.groups), placer.bound
    if not _is_near(problem, plan, "usd_per_month", bound, placer):
        bound = max(bound, bound_with_least_servers(placer))
        plan = close_regions(problem, plan, place_again, placer.deadline)
    return decide_by_cost(placer, with_shards(problem, plan, shard), options, bound=bound)


def _is_near(problem: Geostore, plan: StorePlan, metric: str, bound: float, placer: Placer) -> bool:
    """Return whether least servers need no search: the bill with them is within the gap, or has no bound."""
    if placer.missed or not (problem.price("least_servers") > 0).any():
        return True
    bill = measure(problem, plan, None)[metric] or 0.0
    return bill - bound <= placer.gap * abs(bill)


def gap_for(problem: Geostore) -> float:
    """Return the default gap of the search for a problem."""
    return 1e-4 if len(problem.groups) <= SMALL else 1e-3


def place_components(placer: Placer) -> list[Placed]:
    """Place all components; return the plans of each."""
    placed = []
    for members in placer.problem.components:
        placed.append(placer.place(members))
        if len(placer.groups) == len(placer.problem.groups):
            report("usd_per_month", placer.cost, placer.bound)
    return placed


def decide_by_cost(
    placer: Placer,
    plan: StorePlan,
    options: Options,
    *,
    metric: str = "usd_per_month",
    bound: float | None = None,
) -> Decision[StorePlan]:
    """Return the decision of a plan of all groups with a bound: a placer's, or a given one.

    placer  with the reasons for which goals are missed
    """
    problem = placer.problem
    if options.service == "all" and placer.missed:
        return Decision(plan=None, proof=infeasible(*placer.missed[:5]))
    objective = measure(problem, plan, None)[metric]
    assert objective is not None
    bound = placer.bound if bound is None else bound
    proof = judged(
        "min",
        objective,
        None if placer.missed else min(bound, objective),
        gap=gap_of(options, default=placer.gap),
        metric=metric,
        bound_scope=SCOPE,
        is_cut=placer.is_cut,
        notes=tuple(placer.missed[:5]),
    )
    return Decision(plan=plan, proof=proof, guarantees=frozenset(placer.kept))
