"""Selection of a layout of the address space for given groups: all that Algorithm 1 admits are tried."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast.designs.partitioned_aggregated import partition_and_share
from planner_models.multicast.plan.address_layouts import choose_layout
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.capacity_equations import list_layouts
from planner_models.multicast.problem.problem import Multicast

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
