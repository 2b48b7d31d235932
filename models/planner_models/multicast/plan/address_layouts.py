"""Layouts of the address space for given groups: number of partitions, and copies of each.

More copies survive more failures and spread load; fewer copies leave free entries for more groups.
Algorithm 1 admits as many layouts as k/2 has divisors, so all are tried, which is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.studies import Section
from planner_models.multicast.plan import table_limits
from planner_models.multicast.problem import capacity_equations
from planner_models.multicast.problem.problem import Multicast

COLUMNS: Final = {  # of `list_choices`, and their names in an explanation
    "aggregation_copies": "ra",
    "core_copies": "rc",
    "partitions": "n",
    "failures_survived": "survives",
    "fits": "fits",
    "spare_entries": "spare",
    "core_entries_max": "core",
    "aggregation_entries_max": "aggr",
    "groups_before_overflow": "groups",
    "core_capacity": "eq_1",
    "pod_capacity": "eq_2",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LayoutChoice:
    """The chosen layout, and the next one with more copies.

    table            one row a layout that Algorithm 1 admits (see `list_choices`)
    chosen           ra; None where no layout holds all groups
    next_copies      ra of the next layout with more copies; None where there is none
    missing_entries  entries that the fullest switch of that layout lacks
    """

    table: pd.DataFrame
    chosen: int | None
    next_copies: int | None
    missing_entries: float | None

    def sentences(self) -> list[str]:
        """Return the choice in sentences for a user."""
        lines = []
        if self.chosen is None:
            lines.append("No choice of copies that Algorithm 1 admits holds these groups.")
        else:
            row = self.table.set_index("aggregation_copies").loc[self.chosen]
            lines.append(
                f"ra = {self.chosen}, rc = {row['core_copies']:.0f}, n = {row['partitions']:.0f} "
                f"survives {row['failures_survived']:.0f} failed aggregation "
                f"switch{'' if row['failures_survived'] == 1 else 'es'} of a pod, "
                f"with {row['spare_entries']:.0f} entries to spare in the fullest."
            )
        if self.next_copies is not None and self.missing_entries is not None:
            lines.append(
                f"The next choice, ra = {self.next_copies}, "
                + (
                    f"needs {self.missing_entries:.0f} more entries in its fullest switch."
                    if self.missing_entries > 0
                    else "fits too."
                )
            )
        return lines


def list_choices(problem: Multicast) -> pd.DataFrame:
    """Return every choice of n, rc, ra on the problem's fat tree, with partitions given out in turn.

    Columns: aggregation_copies, core_copies, partitions; failures_survived, aggregation switches of a
    pod that may fail before a partition is lost there; fits, whether core and aggregation tables hold
    all groups; spare_entries of the fullest switch (negative: lacking); *_entries_max;
    groups_before_overflow, number of groups, in their order, that fit before a table overflows (all where
    none does); core_capacity and pod_capacity, equations (1) and (2).

    raises  InputError for trees that are no fat trees
    """
    rows = []
    size = {layer: problem.table_size(layer) for layer in ("core", "aggregation")}
    for layout in capacity_equations.list_layouts(problem.k):
        copies = layout.aggregation_copies
        limits = table_limits.build_limits(problem, copies, layers=("core", "aggregation"))
        counts = np.diff(limits.uses.indptr)
        overflow = table_limits.first_overflow(limits)
        cores = len(np.unique(problem.distribution(copies).core, axis=0))
        spare = float((limits.free - counts).min())
        rows.append(
            (
                copies,
                layout.core_copies,
                layout.partitions,
                copies - 1,
                spare >= 0,
                spare,
                float(counts[:cores].max()),
                float(counts[cores:].max()),
                len(problem.groups) if overflow is None else overflow,
                capacity_equations.core_capacity(
                    k=problem.k, table_size=size["core"], core_copies=layout.core_copies
                ),
                capacity_equations.aggregation_capacity(
                    k=problem.k, table_size=size["aggregation"], aggregation_copies=copies
                ),
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def choose_layout(problem: Multicast, *, wish: str = "copies", least_copies: int = 1) -> LayoutChoice:
    """Return the layout with all groups in core and aggregation tables, with at least `least_copies`.

    wish  copies: the layout with the most copies; groups: with the most free entries

    Exact: all that Algorithm 1 admits are tried. Edge switches need the same entries with any layout.
    """
    table = list_choices(problem)
    able = table[table["fits"] & (table["aggregation_copies"] >= least_copies)]
    copies: int | None = None
    if len(able):
        by = "aggregation_copies" if wish == "copies" else "spare_entries"
        copies = int(able["aggregation_copies"].to_numpy()[int(able[by].to_numpy().argmax())])
    above = table[table["aggregation_copies"] > (least_copies - 1 if copies is None else copies)]
    if not len(above):
        return LayoutChoice(table=table, chosen=copies, next_copies=None, missing_entries=None)
    following = above.iloc[0]
    return LayoutChoice(
        table=table,
        chosen=copies,
        next_copies=int(following["aggregation_copies"]),
        missing_entries=max(0.0, -float(following["spare_entries"])),
    )


def describe_choice(choice: LayoutChoice) -> Section:
    """Return the layouts as a section of an explanation."""
    fits = choice.table["fits"].map({True: "yes", False: "no"})
    return Section(
        title="copies of each part of the addresses",
        frame=choice.table.assign(fits=fits).rename(columns=COLUMNS),
        units=dict.fromkeys(("spare", "core", "aggr"), "entries")
        | dict.fromkeys(("groups", "eq_1", "eq_2"), "groups"),
        note="survives: failed switches of a pod; spare: of the fullest switch; core, aggr: entries of the "
        "fullest; groups: that fit before a table overflows, without edge switches; eq_1, eq_2: groups that "
        "the core layer and the aggregation layer of a pod hold",
    )
