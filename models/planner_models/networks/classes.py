"""Traffic classes of demands: their table, their order, and the sharing of common capacity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import file_name, report_unknown_names
from planner.errors import InputError

MOST_PRIORITY: Final = 1000
MOST_CLASS_WEIGHT: Final = 1e6

CLASSES: Final = Table(
    name="classes",
    about="a traffic class, named in the column class of demands; without the table, all have one priority",
    columns={
        "class": label("its name"),
        "priority": number(
            "rank; 1 is the highest, and classes with the same one share by weight",
            at_least=1,
            at_most=MOST_PRIORITY,
            whole=True,
        ),
        "weight": number(
            "share among classes of its priority: of an overloaded link, and value of a Mbit/s to designs",
            at_least=1 / MOST_CLASS_WEIGHT,
            at_most=MOST_CLASS_WEIGHT,
            optional=True,
            default=1.0,
        ),
    },
    key=("class",),
)


def order_classes(demands: pd.DataFrame, classes: pd.DataFrame | None) -> pd.DataFrame:
    """Return the table of classes, the highest priority first; no rows without classes.

    Without the table `classes`, all that demands name have priority 1 and weight 1, in their order there.
    """
    if "class" not in demands:
        return pd.DataFrame({"class": [], "priority": [], "weight": []})
    if classes is None:
        names = pd.unique(demands["class"].astype(str))
        return pd.DataFrame({"class": names, "priority": 1, "weight": 1.0})
    ordered = classes.sort_values("priority", kind="stable")
    return ordered.astype({"priority": int}).reset_index(drop=True)


def find_class_faults(demands: pd.DataFrame, classes: pd.DataFrame | None) -> Iterator[str]:
    """Yield a fault for each demand of an unknown class, and for a table of classes that no demand has."""
    if classes is None:
        return
    if "class" not in demands:
        yield f"{file_name(demands, 'demands')}: column 'class' is missing; the table classes needs it"
        return
    yield from report_unknown_names(
        demands,
        "demands",
        "class",
        pd.Index(classes["class"]),
        f"no class of {file_name(classes, 'classes')}",
    )


def split_demands(demands: pd.DataFrame, shares: Mapping[str, float]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return demands split into classes by these shares, and the table of the classes.

    shares  of each demand, by class, the highest priority first
    raises  InputError where shares do not add up to 1, or demands have classes already
    """
    if "class" in demands:
        raise InputError("problem.class_shares: demands have classes already")
    total = sum(shares.values())
    if abs(total - 1) > 1e-6:
        raise InputError(f"problem.class_shares: shares add up to {total:g}, must be 1")
    parts = [
        demands.assign(rate_mbps=demands["rate_mbps"] * (share / total), **{"class": name})
        for name, share in shares.items()
    ]
    split = pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)
    classes = pd.DataFrame(
        {"class": list(shares), "priority": np.arange(1.0, len(shares) + 1), "weight": 1.0}
    )
    return split, classes


def share_by_class(available: Floats, demand: Floats, group: Ints, priority: Ints, weight: Floats) -> Floats:
    """Return the share of each request in the amount of its group, shape (R,), in the unit of `demand`.

    Higher priorities take first. Those of the same priority get shares in proportion to their weights, and
    what one does not want goes to the others (weighted max-min fairness).

    available        (G,) what each group has
    demand           (R,) what each request asks for
    group            (R,) group of each request
    priority, weight (R,) of each request; priority 1 is the highest
    """
    remaining, allocated = available.astype(float).copy(), np.zeros(len(demand))
    for level in np.unique(priority):
        here = np.flatnonzero(priority == level)
        # requests by the level at which they are satisfied, wanted / weight, are filled in this order
        here = here[np.lexsort((demand[here] / weight[here], group[here]))]
        if not len(here):
            continue
        groups, want, heavy = group[here], demand[here], weight[here]
        first = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        size = np.diff(np.r_[first, len(here)])
        asked, total = np.cumsum(want), np.cumsum(heavy)
        asked_before = asked - want - np.repeat(asked[first] - want[first], size)
        weight_left = np.repeat(total[first + size - 1], size) - (total - heavy)
        # the water level of a request, once all with lower ones are satisfied
        water = np.maximum(remaining[groups] - asked_before, 0.0) / weight_left
        is_full = want <= heavy * water
        # from the first that is not satisfied on, all have the water level of that one
        bound_index = np.where(is_full, len(here), np.arange(len(here)))
        stop = np.repeat(np.minimum.reduceat(bound_index, first), size)
        level_of = water[np.minimum(stop, len(here) - 1)]
        allocated[here] = np.where(np.arange(len(here)) < stop, want, np.minimum(want, heavy * level_of))
        remaining -= np.bincount(groups, weights=allocated[here], minlength=len(remaining))
        remaining = np.maximum(remaining, 0.0)
    return allocated
