"""The designs of system `capacity`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design
from planner_models.capacity.designs import greedy, optimum, rounding, shortest_path
from planner_models.capacity.designs.open_model import open_model as make_open_model

DESIGNS: Final = (
    Design(
        name="optimum",
        title="Least cost",
        decide=optimum.plan,
        source="Orlowski et al. 2010 (SNDlib); Dahl and Stoer 1998",
        model=optimum.model,
        open_model=make_open_model,
    ),
    Design(
        name="rounding",
        title="Rounded relaxation",
        decide=rounding.plan,
        source="linear relaxation by metric inequalities, Iri 1971, Onaga and Kakusho 1971",
    ),
    Design(
        name="greedy", title="Greedy by prices", decide=greedy.plan, source="greedy purchases by dual prices"
    ),
    Design(
        name="shortest_path",
        title="Along shortest paths",
        decide=shortest_path.plan,
        source="planning by hand",
    ),
)
