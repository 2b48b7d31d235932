"""The tables of system `brokering`: what a problem and a plan are given as."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandera.pandas as pa

from planner.tables import Table, label, number


def count(about: str) -> pa.Column:
    """A column of whole numbers, 0 or more."""
    return pa.Column(
        float,
        [
            pa.Check(np.isfinite, error="must be a finite number"),
            pa.Check.ge(0, error="must be at least 0"),
            pa.Check(lambda s: np.floor(s) == s, error="must be a whole number"),
        ],
        description=about,
    )


def choice(about: str, values: tuple[str, ...]) -> pa.Column:
    """A column of one of the given words."""
    return pa.Column(
        str, pa.Check.isin(values, error="must be one of " + ", ".join(values)), description=about
    )


UNITS: Final = {"GB": 3600 / 8000, "TB": 3600 / 8_000_000, "GiB": 3600e6 / 8 / 2**30, "Mbps-month": 1 / 730}
"""What one Mbit/s comes to in an hour, in the units that costs may be given per."""

CLIENTS: Final = Table(
    name="clients",
    about="clients that want the same content at the same bitrate from the same place and network; "
    "rows alike are added up",
    columns={
        "location": label("where they are"),
        "isp": label("the network they are in"),
        "content": label("what they want"),
        "bitrate_kbps": number("average bitrate of each, kbit/s", more_than=0),
        "clients": count("how many"),
    },
)
LOCATIONS: Final = Table(
    name="locations",
    about="a place where clients or clusters are",
    columns={
        "location": label("its name"),
        "country": label("its country, two letters (ISO 3166)"),
        "latitude": number("degrees north", at_least=-90, at_most=90),
        "longitude": number("degrees east", at_least=-180, at_most=180),
    },
    key=("location",),
)
CLUSTERS: Final = Table(
    name="clusters",
    about="servers of one CDN in one place",
    columns={
        "cluster": label("its name"),
        "cdn": label("whose it is"),
        "location": label("where it is"),
        "capacity_mbps": number("most traffic, Mbit/s", at_least=0),
        "bandwidth_cost": number(
            "what traffic costs the CDN there, in the terms' currency and unit", at_least=0
        ),
        "colocation_cost": number("what space and power cost it, by traffic, the same", at_least=0),
        "background_mbps": number(
            "traffic there that is not this broker's, Mbit/s", at_least=0, optional=True, default=0.0
        ),
    },
    key=("cluster",),
)
SCORES: Final = Table(
    name="scores",
    about="how well a cluster serves a location, smaller is better; what is missing is found by regression",
    columns={
        "location": label("where the clients are"),
        "cluster": label("what serves them"),
        "score": number("its score, as of latency and loss", at_least=0),
    },
    key=("location", "cluster"),
)
CONTRACTS: Final = Table(
    name="contracts",
    about="a flat price that a CDN has agreed to; CDNs without any get their average, see generate.py",
    columns={
        "cdn": label("whose price"),
        "region": label(
            "where the clients are: a country (US), a continent (EU) or world; the narrowest holds"
        ),
        "price": number("in the terms' currency and unit", at_least=0),
        "commitment_mbps": number(
            "traffic that is paid for in any case, Mbit/s", at_least=0, optional=True, default=0.0
        ),
    },
    key=("cdn", "region"),
)
BIDS: Final = Table(
    name="bids",
    about="which clusters are on offer to which locations; without this table all are, at their costs",
    columns={
        "location": label("where the clients are"),
        "cluster": label("what would serve them"),
        "score": number("the score announced", at_least=0, optional=True),
        "price": number("the price asked, in the terms' currency and unit", at_least=0, optional=True),
    },
    key=("location", "cluster"),
)
TERMS: Final = Table(
    name="terms",
    about="one row: what costs are in, and what the broker weighs",
    columns={
        "currency": label("e.g. USD"),
        "cost_per": choice("what costs and prices are per", tuple(UNITS)),
        "performance_weight": number("wp, of the score", at_least=0),
        "cost_weight": number("wc, of the cost per hour", at_least=0),
        "performance_per": choice(
            "whether the score counts once a client or by its Mbit/s", ("client", "bit")
        ),
    },
)
RULE: Final = {
    "location": label("where the clients are; * is anywhere"),
    "isp": label("the network they are in; * is any"),
    "content": label("what they want; * is anything"),
    "cdn": label("whose clusters; * is anyone's"),
    "cluster": label("which cluster; * is any"),
}
PINNED: Final = Table(
    name="pinned",
    about="clients that only these clusters may serve, whatever is on offer",
    columns=RULE,
    key=tuple(RULE),
    may_be_empty=True,
)
FORBIDDEN: Final = Table(
    name="forbidden",
    about="clusters that must not serve these clients",
    columns=RULE,
    key=tuple(RULE),
    may_be_empty=True,
)
TABLES: Final = (CLIENTS, LOCATIONS, CLUSTERS, SCORES, CONTRACTS, BIDS, PINNED, FORBIDDEN, TERMS)
OPTIONAL: Final = ("scores", "contracts", "bids", "pinned", "forbidden", "terms")

ASSIGNMENTS: Final = Table(
    name="assignments",
    about="clients that are sent to one cluster",
    columns={
        "location": label("where they are"),
        "isp": label("the network they are in"),
        "content": label("what they want"),
        "bitrate_kbps": number("average bitrate of each, kbit/s", more_than=0),
        "cluster": label("what serves them"),
        "clients": count("how many"),
    },
    key=("location", "isp", "content", "bitrate_kbps", "cluster"),
    may_be_empty=True,
)
ROUNDS: Final = Table(
    name="rounds",
    about="one round of a protocol that takes several",
    columns={
        "round": count("1 is the first"),
        "overbooked": count("clusters that were promised more than they have"),
        "withdrawn": count("mappings withdrawn"),
    },
    key=("round",),
    may_be_empty=True,
)
OFFERS: Final = Table(
    name="offers",
    about="how CDNs that learn bid now",
    columns={
        "cluster": label("whose bids"),
        "markup": number("price over cost", at_least=0),
        "promise": number("share of the free room that is announced", at_least=0, at_most=1),
    },
    key=("cluster",),
    may_be_empty=True,
)
TRAFFIC: Final = Table(
    name="traffic",
    about="what each CDN carried in the windows before, for bills over several windows",
    columns={
        "window": count("1 is the first"),
        "cdn": label("whose traffic"),
        "mbps": number("this broker's traffic, Mbit/s", at_least=0),
        "charge_per_hour": number("what an hour of it costs at contract prices", at_least=0),
    },
    key=("window", "cdn"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (ASSIGNMENTS, ROUNDS, OFFERS, TRAFFIC)
