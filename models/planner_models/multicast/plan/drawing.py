"""Drawing of a plan: table entries of switches, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

from planner.contract.drawing import Distribution, Drawing
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.problem import Multicast


def draw_entries(problem: Multicast, plan: Channels) -> Sequence[Drawing]:  # noqa: ARG001
    """Return the distribution of table entries of switches by layer."""
    layers = plan.entries.groupby("layer", sort=False, observed=True)["entries"]
    return (
        Distribution(
            title="Table entries of switches by layer",
            values={str(layer): entries.reset_index(drop=True) for layer, entries in layers},
            what="entries",
        ),
    )
