"""Into how many parts to cut the addresses, and how many copies of each to keep, for given groups.

More copies survive more failures and spread load; fewer leave room for more groups. Algorithm 1 admits
as many choices as k/2 has divisors, so all are tried, which is exact.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.system import Decision, Design, Mechanism, Section
from planner_models.multicast import designs, equations, exchange, sees, select
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import Multicast

Wish = Annotated[
    Literal["copies", "groups"],
    Field(description="copies: as many as fit; groups: room for the most groups, with least_copies"),
]
Least = Annotated[
    int,
    Field(ge=1, description="ra at least: one less may fail in a pod, and in all others, without harm"),
]
COLUMNS: Final = {  # of `choices`, and what an explanation calls them
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
class Choice:
    """What was chosen, and how far the others are.

    table    one row a choice that Algorithm 1 admits, with its entries and room (see `choices`)
    chosen   ra; None where nothing meets the wishes
    next_    the nearest choice with more copies: ra; None where there is none
    short    entries that its fullest switch lacks
    """

    table: pd.DataFrame
    chosen: int | None
    next_: int | None
    short: float | None

    def sentences(self) -> list[str]:
        """What to tell a user."""
        said = []
        if self.chosen is None:
            said.append("No choice of copies that Algorithm 1 admits holds these groups.")
        else:
            row = self.table.set_index("aggregation_copies").loc[self.chosen]
            said.append(
                f"ra = {self.chosen}, rc = {row['core_copies']:.0f}, n = {row['partitions']:.0f} "
                f"survives {row['failures_survived']:.0f} failed aggregation "
                f"switch{'' if row['failures_survived'] == 1 else 'es'} of a pod, "
                f"with {row['spare_entries']:.0f} entries to spare in the fullest."
            )
        if self.next_ is not None and self.short is not None:
            said.append(
                f"The next choice, ra = {self.next_}, "
                + (
                    f"needs {self.short:.0f} more entries in its fullest switch."
                    if self.short > 0
                    else "fits too."
                )
            )
        return said


def choices(problem: Multicast) -> pd.DataFrame:
    """Every choice of n, rc, ra on the problem's fat tree, with partitions given in turn.

    Columns: aggregation_copies, core_copies, partitions; failures_survived, aggregation switches of a
    pod that may fail before a partition is lost there; fits, whether core and aggregation tables hold
    all groups; spare_entries of the fullest switch (negative: lacking); *_entries_max;
    groups_before_overflow, how many come, in the order of the groups, before a table is full (all where
    none is); core_capacity and pod_capacity, equations (1) and (2).

    raises  InputError for trees that are no fat trees
    """
    rows = []
    size = {layer: problem.table_size(layer) for layer in ("core", "aggregation")}
    for cut in equations.layouts(problem.k):
        copies = cut.aggregation_copies
        partition = select.in_turn(problem, copies)
        room = select.room(problem, partition, copies, layers=("core", "aggregation"))
        counts = np.diff(room.takes.indptr)
        most = select.first_overflow(room)
        cores = len(np.unique(problem.distribution(copies).core, axis=0))
        spare = float((room.free - counts).min())
        rows.append(
            (
                copies,
                cut.core_copies,
                cut.partitions,
                copies - 1,
                spare >= 0,
                spare,
                float(counts[:cores].max()),
                float(counts[cores:].max()),
                len(problem.groups) if most is None else most,
                equations.core_capacity(k=problem.k, table_size=size["core"], core_copies=cut.core_copies),
                equations.aggregation_capacity(
                    k=problem.k, table_size=size["aggregation"], aggregation_copies=copies
                ),
            )
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def choose(problem: Multicast, *, wish: str = "copies", least_copies: int = 1) -> Choice:
    """The choice with the most copies whose core and aggregation tables hold all groups; or with the
    most room, of those with `least_copies`. Exact: all that Algorithm 1 admits are tried.

    Edge switches hold the same with any choice.
    """
    table = choices(problem)
    able = table[table["fits"] & (table["aggregation_copies"] >= least_copies)]
    chosen: int | None = None
    if len(able):
        by = "aggregation_copies" if wish == "copies" else "spare_entries"
        chosen = int(able["aggregation_copies"].to_numpy()[int(able[by].to_numpy().argmax())])
    above = table[table["aggregation_copies"] > (least_copies - 1 if chosen is None else chosen)]
    if not len(above):
        return Choice(table=table, chosen=chosen, next_=None, short=None)
    after = above.iloc[0]
    return Choice(
        table=table,
        chosen=chosen,
        next_=int(after["aggregation_copies"]),
        short=max(0.0, -float(after["spare_entries"])),
    )


def section(choice: Choice) -> Section:
    """The choices as a table of an explanation."""
    fits = choice.table["fits"].map({True: "yes", False: "no"})
    return Section(
        title="copies of each part of the addresses",
        frame=choice.table.assign(fits=fits).rename(columns=COLUMNS),
        units=dict.fromkeys(("spare", "core", "aggr"), "entries")
        | dict.fromkeys(("groups", "eq_1", "eq_2"), "groups"),
        note="survives: failed switches of a pod; spare: of the fullest switch; core, aggr: entries of the "
        "fullest; groups: before a table overflows, edge switches apart; eq_1, eq_2: what the core layer "
        "holds, and the aggregation layer of a pod",
    )


def chosen_copies(
    problem: Multicast,
    *,
    wish: Wish = "copies",
    least_copies: Least = 1,
    options: Options = Options(),
    previous: Decision[Channels] | None = None,
) -> Decision[Channels]:
    """Chooses n, rc and ra for the groups at hand, then shares entries as `partitioned_aggregated` does.

    Where no choice holds all groups, that with the most room; trees that are no fat trees stay as they are.

    raises  InputError for more copies than a pod can have
    """
    if problem.is_tree:
        _require(least_copies, [problem.aggregation_copies])
        return designs.partitioned_aggregated(problem, options=options, previous=previous)
    cuts = {cut.aggregation_copies: cut for cut in equations.layouts(problem.k)}
    _require(least_copies, cuts)
    chosen = choose(problem, wish=wish, least_copies=least_copies).chosen
    if chosen is None:
        chosen = min(copies for copies in cuts if copies >= least_copies)
    if chosen == problem.aggregation_copies:
        return designs.partitioned_aggregated(problem, options=options, previous=previous)
    cut = cuts[chosen]
    return designs.partitioned_aggregated(recut(problem, cut), options=options, previous=previous)


def recut(problem: Multicast, cut: equations.Layout) -> Multicast:
    """The problem with other n, rc and ra, given out by Algorithm 1."""
    fabric = problem.fabric.assign(
        partitions=float(cut.partitions),
        core_copies=float(cut.core_copies),
        aggregation_copies=float(cut.aggregation_copies),
    )
    other = copy.copy(problem)  # where groups have members was worked out already, and stays
    other.__dict__.pop("_distributions", None)
    object.__setattr__(other, "fabric", fabric)
    object.__setattr__(other, "holds", None)
    return other


def _require(least_copies: int, known: Iterable[int]) -> None:
    if least_copies > max(known):
        raise InputError(f"least_copies is {least_copies}, a pod has at most {max(known)} copies")


DESIGNS: Final = (
    Design(
        name="chosen_copies",
        decide=chosen_copies,
        sees=sees.told,
        exchange=exchange.central,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as of partitioned_aggregated; the controller cuts the addresses anew where the groups ask "
        "for other numbers of copies",
        source="Scaling IP Multicast on Datacenter Topologies, section 3.1.2, step 1",
    ),
)
