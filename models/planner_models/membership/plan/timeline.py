"""Timeline of a plan: who leads from the moment on that the largest site of the leader is cut off."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Timeline
from planner.contract.studies import Section
from planner.formatting import amount
from planner_models.membership.plan.check import ServicePlan
from planner_models.membership.plan.evaluation import detection_of
from planner_models.membership.plan.failures import live_placement
from planner_models.membership.plan.plan import (
    AGREEMENT_RULES,
    FENCE_RULE,
    KILL_RULE,
    QUORUM_RULES,
    RULES_WITH_TWO_LEADERS,
    Placement,
)
from planner_models.membership.problem.drawing import SITE
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.schema import KINDS

COLUMNS: Final = ["member", "from_s", "to_s", "what"]
LEADS, LEADS_TOO, FENCED = "leads", "leads beside the next leader", "fenced"


def cut_site(problem: Membership, placement: Placement) -> int | None:
    """Return the largest site of the leader without all other members; None where there is none."""
    tree = problem.tree
    for site in reversed(tree.paths[placement.leader]):
        is_apart = any(site not in tree.paths[other] for other in placement.members)
        if is_apart and not tree.is_host[site] and tree.repair_s[site] > 0:
            return int(site)
    return None


def follow_cut(problem: Membership, item: ServicePlan) -> pd.DataFrame | None:
    """Return the leaders while the first one is cut off: member, from_s, to_s, what; None without a cut.

    Times are seconds from the cut to the repair, with the mean time of detection.
    """
    placement = item.placement
    site = cut_site(problem, placement)
    if site is None or placement.rule in AGREEMENT_RULES:
        return None
    tree, names = problem.tree, problem.site_names
    repair_s = float(tree.repair_s[site])
    suspected = min(detection_of(problem, placement), repair_s)
    serves = min(suspected + item.service.failover_s, repair_s)
    following = live_placement(problem, placement, np.arange(len(tree.parent)) == site)
    old, cut_for_good = names[placement.leader], "cut off: no other member may lead"
    if following is None or placement.rule == KILL_RULE:
        what = "cut off, and cannot be stopped" if placement.rule == KILL_RULE else cut_for_good
        rows = [(old, 0.0, repair_s, what)]
    else:
        new = names[following.leader]
        rows = [
            *_of_old_leader(placement, old, (suspected, serves, repair_s)),
            (new, 0.0, suspected, "follows"),
            (new, suspected, serves, "takes over"),
            (new, serves, repair_s, LEADS),
        ]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame[frame["to_s"] > frame["from_s"]].reset_index(drop=True)


def _of_old_leader(
    placement: Placement, name: str, times: tuple[float, float, float]
) -> list[tuple[str, float, float, str]]:
    """Return the rows of the leader that is cut off: member, from_s, to_s, what.

    times  of its suspicion, of the service of the next leader, and of the repair, s
    """
    suspected, serves, repair_s = times
    if placement.rule in RULES_WITH_TWO_LEADERS:
        return [(name, 0.0, serves, "leads, cut off"), (name, serves, repair_s, LEADS_TOO)]
    if placement.rule == FENCE_RULE:
        return [(name, 0.0, suspected, "cut off"), (name, suspected, repair_s, FENCED)]
    reason = "no quorum" if placement.rule in QUORUM_RULES else "no lease"
    return [(name, 0.0, repair_s, f"cut off, {reason}")]


def excludes_leader(problem: Membership, item: ServicePlan) -> bool:
    """Return whether a leader that is cut off is excluded by the time that the next one leads.

    Without a fence it may go on as a leader of its own, though no quorum follows it (Albatross, section 7.1).
    """
    frame = follow_cut(problem, item)
    if frame is None:
        return True
    leads_s = frame.loc[frame["what"] == LEADS, "from_s"].min()
    return bool((frame.loc[frame["what"] == FENCED, "from_s"] <= leads_s).any())


def draw_cut(problem: Membership, item: ServicePlan) -> Timeline | None:
    """Return the timeline of a cut of the leader's largest site; None where nothing is cut."""
    frame = follow_cut(problem, item)
    if frame is None:
        return None
    lanes = frame.rename(columns={"member": "lane", "from_s": "start", "to_s": "end"})
    return Timeline(
        title=f"Who leads when {_name_cut(problem, item)} is cut off",
        frame=lanes.assign(element=lanes["lane"]),
        unit="s",
        lanes="member",
        what="what it does",
        kind=SITE,
    )


def tabulate_cut(problem: Membership, item: ServicePlan) -> Section | None:
    """Return the table of a cut of the leader's largest site; None where nothing is cut."""
    frame = follow_cut(problem, item)
    if frame is None:
        return None
    return Section(
        title=f"Who leads when {_name_cut(problem, item)} is cut off",
        frame=frame.rename(columns={"from_s": "from", "to_s": "to"}),
        units={"from": "s", "to": "s"},
    )


def say_cut(problem: Membership, item: ServicePlan) -> str:
    """Return the time with two leaders while the leader's largest site is cut off; blank for never."""
    frame = follow_cut(problem, item)
    both = None if frame is None else frame[frame["what"] == LEADS_TOO]
    if both is None or not len(both):
        return ""
    start, end = float(both["from_s"].iloc[0]), float(both["to_s"].iloc[0])
    return (
        f"When {_name_cut(problem, item)} is cut off, two members lead for {amount(end - start, 's')}, from "
        f"{amount(start, 's')} after the cut until its end."
    )


def _name_cut(problem: Membership, item: ServicePlan) -> str:
    site = cut_site(problem, item.placement)
    assert site is not None
    return f"{KINDS[int(problem.kind[site])]} '{problem.site_names[site]}'"
