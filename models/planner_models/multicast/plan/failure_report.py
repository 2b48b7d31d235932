"""Report on the failed switches of a problem: local rerouting, then rebuilt trees."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.contract.studies import Section
from planner.options import Options
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.rerouting import reroute_groups, rerouting_cost
from planner_models.multicast.plan.tree_repair import repair_trees
from planner_models.multicast.problem.failures import find_working_links
from planner_models.multicast.problem.problem import Multicast


def describe_failures(
    problem: Multicast, plan: Channels, *, options: Options = Options()
) -> tuple[Section, str]:
    """Return the effect of the problem's failed switches on a plan, as a section and a sentence.

    Local rerouting at once, with its cost in headers and tables, then trees rebuilt by set cover.
    """
    names = [] if problem.failed is None else problem.failed["switch"].tolist()
    state = find_working_links(problem.wiring, switches=names)
    reached = reroute_groups(problem, plan, state)
    greedy = repair_trees(problem, plan, state, exact=False)
    exact = repair_trees(problem, plan, state, options=options)
    got = reached.stretch[np.isfinite(reached.stretch)]
    rows: list[tuple[str, float, str]] = [
        ("failed switches", len(names), "switches"),
        ("rerouted: groups with members that packets miss", (reached.unreachable > 0).sum(), "groups"),
        ("rerouted: members that packets miss, mean of groups", 100 * reached.unreachable.mean(), "%"),
        ("rerouted: route stretch, mean of groups", got.mean() if len(got) else np.nan, ""),
        ("rerouted: route stretch, most", got.max() if len(got) else np.nan, ""),
    ]
    if not problem.is_tree:
        needs = rerouting_cost(problem.k)
        rows += [
            ("rerouting needs: marks in headers", needs.identifiers, "identifiers"),
            ("rerouting needs: header bits for them", needs.identifier_bits, "bits"),
            ("rerouting needs: unicast entries of an edge switch", needs.edge_rules, "entries"),
            ("rerouting needs: unicast entries of an aggregation switch", needs.aggregation_rules, "entries"),
        ]
    rows += [
        ("rebuilt: trees with several roots", (exact.table["roots"] > 1).sum(), "trees"),
        ("rebuilt: trees with pods that no core reaches", (exact.table["missing"] > 0).sum(), "trees"),
        ("rebuilt: entries to add", exact.table["entries"].sum(), "entries"),
        ("rebuilt: gap of the greedy trees", 100 * greedy.gap, "%"),
        ("rebuilt: gap of these trees", 100 * exact.gap, "%"),
    ]
    frame = pd.DataFrame(rows, columns=["what", "value", "unit"]).astype({"value": float})
    sentence = (
        f"With {len(names):,} failed switch{'' if len(names) == 1 else 'es'}, local rerouting reaches "
        f"{100 * (1 - reached.unreachable.mean()):.4g}% of the members on ways "
        f"{got.mean() if len(got) else np.nan:.3f} times as long; rebuilt trees need "
        f"{exact.table['entries'].sum():,.0f} more entries."
    )
    return Section(title="failures", frame=frame), sentence
