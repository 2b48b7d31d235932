"""The designs of system `livevideo`: what each control plane sees, and how it decides."""

from __future__ import annotations

from typing import Final

from planner.exchange import nothing
from planner.system import Design, Mechanism
from planner_models.livevideo import (
    columns,
    dns,
    everywhere,
    exchange,
    hybrid,
    local,
    multicast,
    optimum,
    sees,
)

DESIGNS: Final = (
    Design(
        name="vdn",
        decide=columns.distribute,
        sees=sees.told,
        exchange=exchange.central,
        mechanism=Mechanism.TRANSPARENCY,
        messages="every cluster tells a central controller its links and requests; the controller tells "
        "every cluster the next hop of each object",
        source="Mukerjee 2018, section 4.5",
        model=lambda problem, most_moved=None: optimum.model(problem),  # noqa: ARG005
    ),
    Design(
        name="optimum",
        decide=optimum.distribute,
        sees=sees.told,
        exchange=exchange.central,
        mechanism=Mechanism.TRANSPARENCY,
        messages="as vdn",
        source="Mukerjee 2018, Fig. 4.8",
        model=optimum.model,
    ),
    Design(
        name="everything_everywhere",
        decide=everywhere.distribute,
        exchange=nothing,
        mechanism=Mechanism.NONE,
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="overlay_multicast",
        decide=multicast.distribute,
        sees=sees.told,
        exchange=exchange.channel_by_channel,
        mechanism=Mechanism.NONE,
        messages="every cluster tells every channel its links and that channel's requests; nothing of other "
        "channels",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="cdn",
        decide=dns.distribute,
        sees=sees.announced,
        exchange=exchange.by_dns(dns.TTL_S),
        mechanism=Mechanism.REACTION,
        messages="clusters report load and subscriptions once a minute, and ask DNS for their parents; "
        "answers are kept for 30 seconds",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="cdn_1s",
        decide=dns.distribute_1s,
        sees=sees.announced,
        exchange=exchange.by_dns(dns.TTL_1S),
        mechanism=Mechanism.REACTION,
        messages="as cdn, with answers kept for one second",
        source="Mukerjee 2018, section 4.7.1",
    ),
    Design(
        name="distributed",
        decide=local.distribute,
        sees=sees.announced,
        exchange=exchange.distributed,
        mechanism=Mechanism.REACTION,
        messages="clusters announce distance and path capacity of each object to those one tier down, every "
        "second",
        source="Mukerjee 2018, Algorithm 1",
    ),
    Design(
        name="centralized",
        decide=columns.distribute,
        sees=sees.told_late,
        exchange=exchange.central,
        mechanism=Mechanism.TRANSPARENCY,
        messages="as vdn, but requests of the last seconds are not known yet and are not served",
        source="Mukerjee 2018, section 4.7.2",
    ),
    Design(
        name="hybrid",
        decide=hybrid.distribute,
        sees=sees.reported,
        exchange=exchange.hybrid,
        mechanism=Mechanism.HIERARCHICAL_PARTITIONING,
        messages="as vdn and distributed together",
        source="Mukerjee 2018, section 4.4",
    ),
)
