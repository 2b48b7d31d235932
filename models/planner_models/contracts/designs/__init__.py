"""The designs of system `contracts`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design
from planner_models.contracts.designs import optimum, rules
from planner_models.contracts.designs.formulation import open_model

DESIGNS: Final = (
    Design(
        name="optimum",
        title="Least bill",
        decide=optimum.plan,
        source="Singh et al., NSDI 2021 (CASCARA), offline problem; Zhang et al., NSDI 2010 (Entact)",
        model=optimum.build_model,
        open_model=open_model,
    ),
    Design(
        name="by_peak",
        title="Billed by peak",
        decide=optimum.plan_by_peak,
        source="the same problem without free windows",
    ),
    Design(
        name="commitments_first",
        title="Commitments first",
        decide=rules.plan_commitments_first,
        source="practice",
    ),
    Design(
        name="cheapest_first", title="Cheapest first", decide=rules.plan_cheapest_first, source="practice"
    ),
    Design(name="fixed_shares", title="Fixed split", decide=rules.plan_fixed_shares, source="practice"),
)
