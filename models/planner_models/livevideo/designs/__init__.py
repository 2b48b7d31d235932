"""Designs of system `livevideo`: each control plane's observation, algorithm and mechanism."""

from __future__ import annotations

from typing import Any, Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.livevideo import information
from planner_models.livevideo.designs import (
    distributed,
    dns,
    everywhere,
    hybrid,
    optimum,
    overlay_multicast,
    vdn,
)
from planner_models.livevideo.designs.admission import with_service
from planner_models.livevideo.designs.lower_bitrates import with_lower_bitrates
from planner_models.livevideo.designs.open_model import open_model as make_open_model


def _complete(decide: Any, *, pins: bool = False) -> Any:
    """Return a design's function with the parameter `lower_bitrates` and with service "all"."""
    return with_service(with_lower_bitrates(decide), pins=pins)


CENTRAL: Final[dict[str, Any]] = {
    "observe": information.observe_centrally,
    "signalling": information.count_central,
    "mechanism": Mechanism.TRANSPARENCY,
}
REACTIVE: Final[dict[str, Any]] = {
    "observe": information.observe_announcements,
    "mechanism": Mechanism.REACTION,
}
RIVALS: Final = "Mukerjee 2018, section 4.7.1"
DESIGNS: Final = (
    Design(
        name="vdn",
        title="Video delivery network",
        decide=_complete(vdn.distribute, pins=True),
        messages="every cluster reports its links and requests to a central controller; the controller sends "
        "every cluster the next hop of each object",
        source="Mukerjee 2018, section 4.5",
        model=lambda problem, most_moved=None, service="best": optimum.build_model(  # noqa: ARG005
            problem, service=service
        ),
        keeps_previous=lambda parameters: parameters.get("most_moved") is not None,
        **CENTRAL,
    ),
    Design(
        name="optimum",
        title="Optimal distribution",
        decide=_complete(optimum.distribute, pins=True),
        messages="as vdn",
        source="Mukerjee 2018, Fig. 4.8",
        model=optimum.build_model,
        open_model=make_open_model,
        **CENTRAL,
    ),
    Design(
        name="everything_everywhere",
        title="Everything everywhere",
        decide=_complete(everywhere.distribute),
        signalling=no_signalling,
        mechanism=Mechanism.NONE,
        source=RIVALS,
    ),
    Design(
        name="overlay_multicast",
        title="Overlay multicast",
        decide=_complete(overlay_multicast.distribute),
        observe=information.observe_centrally,
        signalling=information.count_per_channel,
        mechanism=Mechanism.NONE,
        messages="every cluster reports to every channel its links and the requests for that channel only",
        source=RIVALS,
    ),
    Design(
        name="cdn",
        title="CDN with DNS",
        decide=_complete(dns.distribute),
        signalling=information.count_dns(dns.CDN_TTL_S),
        messages="clusters report load and subscriptions once a minute, and query DNS for their parents; "
        "answers are cached for 30 seconds",
        source=RIVALS,
        **REACTIVE,
    ),
    Design(
        name="cdn_1s",
        title="CDN, answers of 1 s",
        decide=_complete(dns.distribute_1s),
        signalling=information.count_dns(dns.CDN_1S_TTL_S),
        messages="as cdn, with answers cached for one second",
        source=RIVALS,
        **REACTIVE,
    ),
    Design(
        name="distributed",
        title="Distributed control",
        decide=_complete(distributed.distribute),
        signalling=information.count_distributed,
        messages="clusters announce distance and path capacity of each object to those one tier down, every "
        "second",
        source="Mukerjee 2018, Algorithm 1",
        **REACTIVE,
    ),
    Design(
        name="centralized",
        title="Centralized control",
        decide=_complete(vdn.distribute, pins=True),
        messages="as vdn; requests of the last seconds are not observed yet and stay unserved",
        source="Mukerjee 2018, section 4.7.2",
        **CENTRAL | {"observe": information.observe_with_age},
    ),
    Design(
        name="hybrid",
        title="Hybrid control",
        decide=_complete(hybrid.distribute, pins=True),
        observe=information.observe_hybrid,
        signalling=information.count_hybrid,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as vdn and distributed together",
        source="Mukerjee 2018, section 4.4",
    ),
)
