"""Links that a table has in one direction only, and those opposite to them.

Many tables have one row for a line that carries traffic both ways. Read as one-way links, half of the network
is missing, and demands have no path.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from planner.arrays import Bools
from planner.contract.questions import OpenQuestion
from planner_models.traffic.problem.duplex_lines import pair_links

if TYPE_CHECKING:
    from planner_models.traffic.problem.problem import Traffic


def lacks_opposite(problem: Traffic) -> Bools:
    """Return the links without an opposite one of the same parallel number, shape (E,)."""
    _, line = pair_links(problem)
    return np.asarray(np.bincount(line)[line] == 1)


def add_opposites(problem: Traffic) -> Traffic:
    """Return the problem with a link opposite to each that has none, of the same values in all columns."""
    alone = lacks_opposite(problem)
    if not alone.any():
        return problem
    links = problem.numbered_links
    opposite = links[alone].rename(columns={"tail": "head", "head": "tail"})[links.columns]
    return replace(problem, links=pd.concat([links, opposite], ignore_index=True))


def find_one_way_doubt(problem: Traffic, where: str) -> str | None:
    """Return a warning where no link has an opposite, and demands have a path only if all had one.

    where  name of the links' file
    """
    count = _count_against_rows(problem)
    if count == 0:
        return None
    demands = "1 demand has" if count == 1 else f"{count:,} demands have"
    return (
        f"warning: {where}: no row has an opposite one, and {demands} no path against the direction of the "
        "rows; if each row is a line both ways, say problem.both_directions = true, else "
        "false"
    )


def ask_directions(problem: Traffic) -> list[OpenQuestion]:
    """Return the question whether rows are lines both ways, where no link of several has an opposite one."""
    if len(problem.links) < 2 or not lacks_opposite(problem).all():
        return []
    lost = _count_against_rows(problem)
    count = f"{lost:,} of {len(problem.demands):,} demands"
    return [
        OpenQuestion(
            parameter="both_directions",
            text="is each row of the table links a line in both directions",
            answers={
                True: "each row of links is a line both ways",
                False: "each row of links is one way only",
            },
            assumed=lost > 0,
            reason=f"no row has an opposite one, and {count} have a path only against their direction"
            if lost
            else "all demands that have a path have one in the direction of the rows",
        )
    ]


def _count_against_rows(problem: Traffic) -> int:
    """Return the number of demands with a path only against the rows; 0 where a link has an opposite one."""
    lost = problem.unreachable
    if not lost.any() or not lacks_opposite(problem).all():
        return 0
    return int((lost & ~add_opposites(problem).unreachable).sum())
