"""Tables of problems and plans of system `brokering`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planner.contract.table import Column, Table, choice, label, number

MOST_CLIENTS: Final = 1_000_000_000  # of a row, and of all rows together
LEAST_KBPS: Final = 1e-3
MOST_KBPS: Final = 1e9
MOST_MBPS: Final = 1e12
MOST_PRICE: Final = 1e9
MOST_SCORE: Final = 1e9
MOST_WEIGHT: Final = 1e9


def bitrate(about: str) -> Column:
    """Return a column of bitrates above 0, in which all computations are safe."""
    return number(about, more_than=0, at_most=MOST_KBPS, least=LEAST_KBPS, usual=(5, 1e6))


def count(about: str, other_names: Sequence[str] = ()) -> Column:
    """Return a column of whole numbers, 0 or more."""
    return number(about, at_least=0, at_most=MOST_CLIENTS, whole=True, other_names=other_names)


def _optional(about: str) -> Column:
    """Return an optional column of numbers, 0 or more; 0 where it is absent."""
    return number(about, at_least=0, at_most=MOST_MBPS, optional=True, default=0.0)


def _limit(about: str, largest: float, *, share: bool = False) -> Column:
    """Return an optional column of limits, 0 or more, that may be blank."""
    return number(about, at_least=0, at_most=largest, share=share, optional=True, may_be_blank=True)


UNITS: Final = {"GB": 3600 / 8000, "TB": 3600 / 8_000_000, "GiB": 3600e6 / 8 / 2**30, "Mbps-month": 1 / 730}
"""Traffic of one Mbit/s in an hour, in each unit that costs may be given per."""

CDN_NAMES: Final = ("provider", "vendor", "owner", "network operator", "anbieter", "fournisseur", "proveedor")
LOCATION_NAMES: Final = ("city", "place", "metro", "town", "market", "stadt", "ort", "ville", "ciudad")
CLIENT_NAMES: Final = (
    *("viewers", "users", "sessions", "subscribers", "number of clients", "number of viewers", "count"),
    *("audience", "nutzer", "kunden", "nombre de clients", "utilisateurs", "usuarios", "clientes"),
)
KIND: Final = {
    "location": label("place of the clients", other_names=LOCATION_NAMES),
    "isp": label(
        "network of the clients", other_names=("asn", "as number", "network", "operator", "as", "fai")
    ),
    "content": label("requested content", other_names=("video", "title", "object", "inhalt", "contenu")),
    "bitrate_kbps": bitrate("average bitrate of each client, kbit/s"),
}
CLIENTS: Final = Table(
    name="clients",
    other_names=("viewers", "sessions", "demand", "requests"),
    about="clients that request the same content at the same bitrate from the same place and network; "
    "equal rows are added up",
    columns={**KIND, "clients": count("number of clients", CLIENT_NAMES)},
    divisible=("clients",),
)
LOCATIONS: Final = Table(
    name="locations",
    other_names=("cities", "places", "orte", "städte", "villes", "ciudades"),
    about="a place where clients or clusters are",
    columns={
        "location": label("name of the place", other_names=LOCATION_NAMES),
        "country": label(
            "country code of two letters (ISO 3166)",
            other_names=("country code", "cc", "iso", "land", "pays", "país"),
        ),
        "latitude": number(
            "degrees north", at_least=-90, at_most=90, confused_with="longitude", other_names=("lat",)
        ),
        "longitude": number("degrees east", at_least=-180, at_most=180, other_names=("lon", "lng", "long")),
    },
    key=("location",),
)
CLUSTERS: Final = Table(
    name="clusters",
    other_names=("servers", "sites", "pops", "serveurs", "servidores"),
    about="servers of one CDN in one place",
    columns={
        "cluster": label("name of the cluster", other_names=("server", "site", "pop")),
        "cdn": label("CDN that owns it", other_names=CDN_NAMES),
        "location": label("place of the cluster", other_names=LOCATION_NAMES),
        "capacity_mbps": number("capacity, Mbit/s", at_least=0, at_most=MOST_MBPS, usual=(0.1, 1e9)),
        "bandwidth_cost": number(
            "cost of traffic to the CDN, in the terms' currency and unit",
            at_least=0,
            at_most=MOST_PRICE,
            other_names=(
                "traffic cost",
                "transit cost",
                "egress cost",
                "bandwidth price",
                "transit price",
                "coût bande passante",
            ),
        ),
        "colocation_cost": number(
            "cost of space and power by traffic, likewise",
            at_least=0,
            at_most=MOST_PRICE,
            other_names=("colo cost", "space cost", "hosting cost", "housing cost", "coût colocation"),
        ),
        "background_mbps": _optional("background traffic, not of this broker, Mbit/s"),
    },
    key=("cluster",),
)
SCORES: Final = Table(
    name="scores",
    about="performance of a cluster for a location, smaller is better; missing scores by regression",
    columns={
        "location": KIND["location"],
        "cluster": label("cluster that would serve them"),
        "score": number("score, such as of latency and loss", at_least=0, at_most=MOST_SCORE),
    },
    key=("location", "cluster"),
)
CONTRACTS: Final = Table(
    name="contracts",
    about="flat price of a CDN by contract; a CDN without any has its average cost",
    columns={
        "cdn": label("CDN", other_names=CDN_NAMES),
        "region": label(
            "region of the clients: a country (US), a continent (EU, Europe) or world; the narrowest applies"
        ),
        "price": number("price in the terms' currency and unit", at_least=0, at_most=MOST_PRICE),
        "commitment_mbps": _optional("traffic that is paid for in any case, Mbit/s"),
    },
    key=("cdn", "region"),
)
LIMITS: Final = Table(
    name="limits",
    other_names=("volume limits", "traffic limits", "quotas", "shares"),
    about="least and most of this broker's traffic that a CDN carries for the clients of a region",
    columns={
        "cdn": label("CDN", other_names=CDN_NAMES),
        "region": label(
            "region of the clients: a country (US), a continent (EU, Europe) or world; each row counts"
        ),
        "min_mbps": _limit("least traffic, Mbit/s; blank: none", MOST_MBPS),
        "max_mbps": _limit("most traffic, Mbit/s; blank: any", MOST_MBPS),
        "min_share": _limit(
            "least share of the traffic that the region's clients ask for; blank: none", 1, share=True
        ),
        "max_share": _limit("most of that share; blank: any", 1, share=True),
    },
    key=("cdn", "region"),
)
BIDS: Final = Table(
    name="bids",
    about="clusters on offer to locations; without this table all clusters are on offer, at their costs",
    columns={
        "location": KIND["location"],
        "cluster": label("cluster on offer"),
        "score": number("announced score", at_least=0, at_most=MOST_SCORE, optional=True),
        "price": number(
            "price of the bid, in the terms' currency and unit", at_least=0, at_most=MOST_PRICE, optional=True
        ),
    },
    key=("location", "cluster"),
)
TERMS: Final = Table(
    name="terms",
    about="one row: units of costs, and the broker's weights",
    columns={
        "currency": label("currency of costs and prices, such as USD"),
        "cost_per": choice("unit of traffic that costs and prices are per", tuple(UNITS)),
        "performance_weight": number("weight of the score (wp)", at_least=0, at_most=MOST_WEIGHT),
        "cost_weight": number("weight of the cost per hour (wc)", at_least=0, at_most=MOST_WEIGHT),
        "performance_per": choice(
            "whether the score counts once a client or by its Mbit/s; location: once a client, and costs by "
            "the mean bitrate of the location",
            ("client", "bit", "location"),
        ),
    },
)
RULE: Final = {
    "location": label("place of the clients; * is any"),
    "isp": label("network of the clients; * is any"),
    "content": label("requested content; * is any"),
    "cdn": label("CDN of the clusters; * is any"),
    "cluster": label("cluster; * is any"),
}
PINNED, FORBIDDEN = (
    Table(name=name, about=about, columns=RULE, key=tuple(RULE), may_be_empty=True)
    for name, about in (
        ("pinned", "clients that only these clusters may serve, whatever is on offer"),
        ("forbidden", "clusters that must not serve these clients"),
    )
)
TABLES: Final = (CLIENTS, LOCATIONS, CLUSTERS, SCORES, CONTRACTS, LIMITS, BIDS, PINNED, FORBIDDEN, TERMS)
OPTIONAL: Final = ("scores", "contracts", "limits", "bids", "pinned", "forbidden", "terms")

ASSIGNMENTS: Final = Table(
    name="assignments",
    about="clients assigned to one cluster",
    columns={
        **KIND,
        "cluster": label("cluster that serves them"),
        "clients": count("number of clients"),
    },
    key=(*KIND, "cluster"),
    may_be_empty=True,
)
SHED: Final = Table(
    name="shed",
    about="clients that are left without a cluster on purpose, because capacity is short",
    columns={**KIND, "clients": count("number of clients")},
    key=tuple(KIND),
    may_be_empty=True,
)
ROUNDS: Final = Table(
    name="rounds",
    about="one round of a protocol that takes several",
    columns={
        "round": count("1 is the first"),
        "overbooked": count("clusters whose promises exceed their capacity"),
        "withdrawn": count("mappings that were withdrawn"),
    },
    key=("round",),
    may_be_empty=True,
)
OFFERS: Final = Table(
    name="offers",
    about="present bids of CDNs that learn",
    columns={
        "cluster": label("cluster on offer"),
        "markup": number("price over cost", at_least=0, at_most=MOST_PRICE),
        "promise": number("announced share of the residual capacity", at_least=0, at_most=1, share=True),
    },
    key=("cluster",),
    may_be_empty=True,
)
TRAFFIC: Final = Table(
    name="traffic",
    about="traffic of each contract in earlier windows, for bills over several windows",
    columns={
        "window": count("1 is the first"),
        "cdn": label("CDN that carried it"),
        "region": label("region of the contract; world where absent", optional=True),
        "mbps": number("this broker's traffic, Mbit/s", at_least=0, at_most=MOST_MBPS),
    },
    key=("window", "cdn", "region"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (ASSIGNMENTS, SHED, ROUNDS, OFFERS, TRAFFIC)
