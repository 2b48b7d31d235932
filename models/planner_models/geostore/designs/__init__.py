"""The designs of system `geostore`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner.contract.signalling import no_signalling
from planner_models.geostore import information
from planner_models.geostore.designs import (
    bids,
    everywhere,
    leaders,
    merged,
    near_users,
    optimum,
    skypie,
    spanstore,
    volley,
)

DESIGNS: Final = (
    Design(
        name="optimum",
        title="Optimal placement",
        decide=optimum.place,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Wu et al. 2013 (SPANStore); Bang et al. 2024 (SkyPIE); Lloyd et al. 2013, 3.1 (closure)",
        messages="access of all groups, prices and round-trip times",
        signalling=information.signal_all,
    ),
    Design(
        name="everywhere",
        title="Full replicas everywhere",
        decide=everywhere.place,
        source="Lloyd et al. 2013 (Eiger), 2.1",
        signalling=no_signalling,
    ),
    Design(
        name="near_users",
        title="Replica near each user",
        decide=near_users.place,
        observe=information.observe,
        mechanism=Mechanism.REACTION,
        source="common practice",
        messages="each group's own access",
        signalling=information.signal_own_access,
    ),
    Design(
        name="spanstore",
        title="SPANStore",
        decide=spanstore.place,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Wu et al. 2013 (SPANStore), 4",
        messages="access of all groups, prices and round-trip times",
        signalling=information.signal_all,
    ),
    Design(
        name="skypie",
        title="SkyPIE",
        decide=skypie.place,
        observe=information.observe,
        mechanism=Mechanism.TRANSPARENCY,
        source="Bang et al. 2024 (SkyPIE)",
        messages="access of all groups, prices and round-trip times",
        signalling=information.signal_all,
    ),
    Design(
        name="merged",
        title="One placement for dependent groups",
        decide=merged.place,
        observe=information.observe,
        mechanism=Mechanism.REACTION,
        source="Lloyd et al. 2013, 3.1, applied to partial replicas",
        messages="each component's own access",
        signalling=information.signal_own_access,
    ),
    Design(
        name="single_leader",
        title="Single leader with backups",
        decide=leaders.place_single_leader,
        observe=information.observe,
        source="common practice",
        messages="each group's own access",
        signalling=information.signal_own_access,
    ),
    Design(
        name="majority",
        title="Majority of voters",
        decide=leaders.place_majority,
        source="Gifford 1979",
        signalling=no_signalling,
    ),
    Design(
        name="survive_zone",
        title="Majority by zones of the home region",
        decide=leaders.place_survive_zone,
        source="CockroachDB, multi-region survival goals",
        signalling=no_signalling,
    ),
    Design(
        name="survive_region",
        title="Majority by regions",
        decide=leaders.place_survive_region,
        source="CockroachDB, multi-region survival goals",
        signalling=no_signalling,
    ),
    Design(
        name="volley",
        title="Weighted centre",
        decide=volley.place,
        observe=information.observe,
        mechanism=Mechanism.REACTION,
        source="Agarwal et al. 2010 (Volley)",
        messages="logs of access",
        signalling=information.signal_own_access,
    ),
    Design(
        name="bids",
        title="Bidding by regions",
        decide=bids.place,
        observe=information.observe,
        mechanism=Mechanism.PRIORITY_RANKING,
        source="Mukerjee 2018, chapter 3 (VDX), applied to storage",
        messages="each region's price and time for each user; the owners' selection",
        signalling=information.signal_bids,
    ),
)
