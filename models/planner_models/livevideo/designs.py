"""The designs of system `livevideo`: what each control plane sees, and how it decides."""

from __future__ import annotations

from typing import Final

from planner.system import Design, Mechanism
from planner_models.livevideo import columns, dns, everywhere, hybrid, local, multicast, optimum

DESIGNS: Final = (
    Design(
        name="vdn",
        decide=columns.distribute,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every cluster tells a central controller its links and requests; the controller tells "
        "every cluster the next hop of each object",
        source="Mukerjee 2018, section 4.5",
        model=lambda problem, most_moved=None: optimum.model(problem),  # noqa: ARG005
    ),
    Design(
        name="optimum",
        decide=optimum.distribute,
        mechanism=Mechanism.TRANSPARENCY,
        messages="as vdn",
        source="Mukerjee 2018, Fig. 4.8",
        model=optimum.model,
    ),
    Design(
        name="everything_everywhere",
        decide=everywhere.distribute,
        mechanism=Mechanism.NONE,
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="overlay_multicast",
        decide=multicast.distribute,
        mechanism=Mechanism.NONE,
        messages="every channel knows all links and its own requests, nothing of other channels",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="cdn",
        decide=dns.distribute,
        mechanism=Mechanism.REACTION,
        messages="clusters report load and subscriptions; DNS answers are kept for 30 seconds",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="cdn_1s",
        decide=dns.distribute_1s,
        mechanism=Mechanism.REACTION,
        messages="as cdn, with answers kept for one second",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="distributed",
        decide=local.distribute,
        mechanism=Mechanism.REACTION,
        messages="clusters announce distance and path capacity of each object to those one tier down",
        source="Mukerjee 2018, Algorithm 1",
    ),
    Design(
        name="centralized",
        decide=columns.distribute,
        sees=hybrid.arrived,
        mechanism=Mechanism.TRANSPARENCY,
        messages="as vdn, but requests of the last seconds are not known yet and are not served",
        source="Mukerjee 2018, section 4.7.2",
    ),
    Design(
        name="hybrid",
        decide=hybrid.distribute,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as vdn and distributed together",
        source="Mukerjee 2018, section 4.4",
    ),
)
