"""Adjustments that apply to every problem of system `traffic`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.notes import add_note
from planner.contract.tables import file_name
from planner.errors import InputError
from planner_models.networks.classes import split_demands
from planner_models.traffic.problem import failures
from planner_models.traffic.problem.divisible_demands import find_divided
from planner_models.traffic.problem.one_way_links import add_opposites, find_one_way_doubt
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.tables import Overload


def adjust(
    problem: Traffic,
    *,
    both_directions: Annotated[
        bool | None,
        Field(
            description="true: each link without an opposite one gets one, for tables with a row for both "
            "ways; false: each row is one way only; none: the same, with a warning where no row has an "
            "opposite one and demands lack a path"
        ),
    ] = None,
    scale: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="every demand's rate is multiplied by this")
    ] = 1.0,
    capacity_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every link's capacity is multiplied by this")
    ] = 1.0,
    fail_links: failures.FailLinks = (),
    fail_nodes: failures.FailNodes = (),
    fail_groups: failures.FailGroups = (),
    risk_groups: failures.RiskGroups = None,
    capacity_factors: failures.CapacityFactors = {},  # noqa: B006 - never changed
    fail_random_links: failures.RandomLinks = 0,
    fail_random_nodes: failures.RandomNodes = 0,
    fail_random_groups: failures.RandomGroups = 0,
    failure_seed: failures.FailureSeed = 0,
    lost_demands: failures.LostDemands = "shed",
    class_shares: Annotated[
        dict[str, Annotated[float, Field(gt=0, le=1)]],
        Field(
            description="classes that each demand is split into, the highest priority first, and the shares "
            "of its rate that they get"
        ),
    ] = {},  # noqa: B006 - never changed
    overload: Annotated[
        Overload,
        Field(
            description="what happens on overloaded links; drop: senders keep their rates, and each link "
            "drops its excess, the same share of all traffic on it; priority: the same, but links serve "
            "higher classes first; max-min: TCP slows the senders down to max-min fair rates"
        ),
    ] = "drop",
) -> Traffic:
    """Add opposite links, scale demands and capacities, then remove failed elements.

    Nodes that fail stay in the table, without links. Named elements fail first; then groups, nodes and links
    are drawn, in this order, among those that remain. Parallel links keep their numbers. Factors in
    `capacity_factors` are of scaled capacities.

    raises  InputError for names that match nothing, for more failures than there are elements, and,
            with `lost_demands` "error", for demands that lose their last path
    """
    if both_directions:
        problem = add_opposites(problem)
    elif both_directions is None and (
        doubt := find_one_way_doubt(problem, file_name(problem.links, "links"))
    ):
        add_note(doubt)
    problem = problem.scale_demands(scale).scale_capacity(capacity_scale)
    if class_shares:
        demands, classes = split_demands(problem.demands, class_shares)
        problem = replace(problem, demands=demands, classes=classes)
    if overload != problem.overload:
        problem = replace(problem, overload=overload)
    if note := find_divided(problem):
        add_note(note)
    random_failures = fail_random_links or fail_random_nodes or fail_random_groups
    if not (fail_links or fail_nodes or fail_groups or capacity_factors or random_failures):
        return problem
    failed = failures.FailedElements(problem, risk_groups)
    failed.fail_links(fail_links)
    failed.fail_nodes(fail_nodes)
    failed.fail_groups(fail_groups)
    factor = failed.capacity_factors(capacity_factors)
    random = np.random.default_rng(failure_seed)
    if not failed.faults:
        failed.draw_groups(fail_random_groups, random)
        failed.draw_nodes(fail_random_nodes, random)
        failed.draw_links(fail_random_links, random)
    if failed.faults:
        raise InputError(*failed.faults)
    return failures.remove_failed(problem, failed.link_down, factor, lost_demands)
