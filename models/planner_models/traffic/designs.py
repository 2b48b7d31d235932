"""The designs of system `traffic`: what each control plane sees, and how it decides."""

from __future__ import annotations

from typing import Final

from planner.system import Design, Mechanism
from planner_models.traffic import ecmp, optimum
from planner_models.traffic.sees import measured

DESIGNS: Final = (
    Design(
        name="optimum",
        decide=optimum.route,
        sees=measured,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every node tells a central controller its links and the rates of its demands; "
        "the controller tells every node its splits",
        source="Sen et al. 2013, equation (1)",
        model=optimum.model,
    ),
    Design(
        name="ecmp",
        decide=ecmp.route,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2328, RFC 2992",
    ),
    Design(
        name="shortest_path",
        decide=ecmp.route_single,
        mechanism=Mechanism.NONE,
        messages="nodes flood link weights when the network changes",
        source="RFC 2328",
    ),
)
