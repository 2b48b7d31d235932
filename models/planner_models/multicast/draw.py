"""What shows a plan best: how full the tables of switches are, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

from planner.drawing import Distribution, Drawing
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import Multicast


def draw(problem: Multicast, plan: Channels) -> Sequence[Drawing]:  # noqa: ARG001
    """Table entries of switches by layer."""
    layers = plan.entries.groupby("layer", sort=False, observed=True)["entries"]
    return (
        Distribution(
            title="Table entries of switches by layer",
            values={str(layer): entries.reset_index(drop=True) for layer, entries in layers},
            what="entries",
        ),
    )
