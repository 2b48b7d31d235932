"""The designs of system `topology`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design
from planner_models.topology.designs import fixed_rules, optimum
from planner_models.topology.designs.formulation import open_model

DESIGNS: Final = (
    Design(
        name="optimum",
        title="Optimal topology",
        decide=optimum.plan,
        source="Poutievski et al. 2022 (Jupiter), the problem itself",
        model=optimum.build_model,
        open_model=open_model,
    ),
    Design(
        name="proportional",
        title="Proportional to demand",
        decide=fixed_rules.plan_proportional,
        source="Wang et al. 2023 (TopoOpt); Sinkhorn and Knopp 1967",
    ),
    Design(
        name="matching",
        title="Repeated matching",
        decide=fixed_rules.plan_matching,
        source="Farrington et al. 2010 (Helios), greedy matching of several links",
    ),
    Design(
        name="uniform",
        title="Uniform mesh",
        decide=fixed_rules.plan_mesh,
        source="Poutievski et al. 2022 (Jupiter), uniform direct-connect mesh",
    ),
)
