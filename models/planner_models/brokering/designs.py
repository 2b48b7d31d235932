"""The designs of system `brokering`: what brokers and CDNs tell each other, and who decides."""

from __future__ import annotations

from typing import Final

from planner.system import Design, Mechanism
from planner_models.brokering import exchange, learning, market, sees, several

DESIGNS: Final = (
    Design(
        name="marketplace",
        decide=market.assign,
        sees=sees.marketplace,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="the broker shares its clients; CDNs bid several clusters for each, with performance, "
        "price and the room they have; the broker says which bids it accepts",
        source="Mukerjee 2018, 3.4.2 (Marketplace)",
        model=market.model,
    ),
    Design(
        name="omniscient",
        decide=market.assign,
        sees=sees.told,
        exchange=exchange.everything,
        mechanism=Mechanism.TRANSPARENCY,
        messages="CDNs tell the broker every cluster, cost and capacity",
        source="Mukerjee 2018, 3.5.1 (Omniscient)",
        model=market.model,
    ),
    Design(
        name="brokered",
        decide=market.assign,
        sees=sees.brokered,
        exchange=exchange.rounds,
        mechanism=Mechanism.REACTION,
        messages="none; a contract's price is agreed on for months",
        source="Mukerjee 2018, 3.4.2 (Brokered)",
        model=market.model,
    ),
    Design(
        name="multicluster",
        decide=market.assign,
        sees=sees.multicluster,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="CDNs announce several clusters for each location",
        source="Mukerjee 2018, 3.4.2 (Multicluster)",
        model=market.model,
    ),
    Design(
        name="dynamic_pricing",
        decide=market.assign,
        sees=sees.dynamic_pricing,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="CDNs announce the cost of the cluster they would use for each location",
        source="Mukerjee 2018, 3.4.2 (DynamicPricing)",
        model=market.model,
    ),
    Design(
        name="dynamic_multicluster",
        decide=market.assign,
        sees=sees.dynamic_multicluster,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="CDNs announce several clusters for each location, with their costs",
        source="Mukerjee 2018, 3.4.2 (DynamicMulticluster)",
        model=market.model,
    ),
    Design(
        name="best_lookup",
        decide=market.assign,
        sees=sees.best_lookup,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="CDNs announce several clusters for each location, with costs and capacities",
        source="Mukerjee 2018, 3.4.2 (BestLookup)",
        model=market.model,
    ),
    Design(
        name="protocol",
        decide=market.assign,
        sees=sees.protocol,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="any choice of what is shared, matched and announced",
        source="Mukerjee 2018, Table 3.2",
        model=market.model,
    ),
    Design(
        name="several_brokers",
        decide=several.assign,
        sees=sees.marketplace,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="as marketplace, with each of several brokers, none of which knows of the others",
        source="Mukerjee 2018, 3.4.2 (overbooking)",
    ),
    Design(
        name="transactions",
        decide=several.commit,
        sees=sees.marketplace,
        exchange=exchange.transactions,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="as marketplace; then CDNs commit to all brokers' mappings or all are withdrawn",
        source="Mukerjee 2018, 3.4.2 (Transactions)",
    ),
    Design(
        name="learning_bidders",
        decide=learning.assign,
        sees=sees.marketplace,
        exchange=exchange.rounds,
        mechanism=Mechanism.PRIORITY_RANKING,
        messages="as marketplace; CDNs move prices and promises by which bids were accepted the last time",
        source="Mukerjee 2018, 3.6.1 and 3.6.3 (Accept)",
    ),
)
