"""Sources of problems of system `cdnrouting`: another scenario's network, and a CDN drawn or joined to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner.scenarios.scenario import load
from planner_models.cdnrouting.problem.generators import (
    Cdn,
    Seed,
    add_cdn,
    scale_to_load,
    scale_to_utilization,
)
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.schema import (
    CLIENTS,
    CLUSTERS,
    HOLDINGS,
    MAX_MBPS,
    PLACES,
    RANKS,
    TERMS,
)

NetworkScenario = Annotated[
    str, Field(description="scenario with nodes, links and demands, such as traffic/abilene")
]
NODE_COLUMNS: Final = ("node", "latitude", "longitude", "x", "y")
LINK_COLUMNS: Final = ("tail", "head", "capacity_mbps", "weight", "cost", "latency_ms")


@spread(cdn=Cdn())
def split(
    *,
    network: NetworkScenario,
    cdn: Cdn,
    load: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="load of the busiest link over its capacity where clients get content from the "
            "nearest cluster on shortest paths; default: traffic as it is",
        ),
    ] = None,
    utilization: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="smallest possible load of the busiest link over its capacity, in place of `load`",
        ),
    ] = None,
    link_mbps: Annotated[
        float | None,
        Field(gt=0, le=MAX_MBPS, description="capacity of every link; default: as in the network's scenario"),
    ] = None,
    seed: Seed = 0,
) -> Delivery:
    """Build a CDN on a network: a share of all demands is requested from clusters at random nodes.

    raises  InputError where the scenario has no network, or no latency of links, or where both `load` and
            `utilization` are given
    """
    if load is not None and utilization is not None:
        raise InputError("utilization: is given beside load; give one of them")
    tables = _read_network(network)
    if link_mbps is not None:
        tables["links"] = tables["links"].assign(capacity_mbps=link_mbps)
    demands = tables.pop("demands")
    random = np.random.default_rng(seed)
    problem = add_cdn(tables, demands, random=random, **vars(cdn))
    if load is not None:
        return scale_to_load(problem, load)
    return problem if utilization is None else scale_to_utilization(problem, utilization)


def join(
    *,
    network: NetworkScenario,
    market: Annotated[
        str, Field(description="scenario with clients and clusters, such as brokering/own_data")
    ],
    places: Annotated[
        Path,
        Field(description="folder with a table places, and holdings, ranks or terms where there are some"),
    ],
) -> Delivery:
    """Build a problem of the network of one scenario, clients and clusters of another, and a table places.

    raises  InputError where a scenario lacks tables, links have no latency, or a place has no node
    """
    tables = _read_network(network)
    parties = _tables_of(market, ("clients", "clusters"))
    names = (PLACES, HOLDINGS, RANKS, TERMS)
    files = find_tables(names, places, optional=("holdings", "ranks", "terms"))
    besides = read_tables([table for table in names if table.name in files], files)
    market_tables = {
        table.name: parties[table.name][[name for name in table.columns if name in parties[table.name]]]
        for table in (CLIENTS, CLUSTERS)
    }
    return Delivery.from_tables({**tables, **market_tables, **besides})


def _tables_of(scenario: str, required: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Return the tables of a scenario's problem; raise InputError where it has not all that are required."""
    problem: Any = load(scenario).make_problem()
    tables: Mapping[str, pd.DataFrame] = problem.to_tables()
    missing = [name for name in required if name not in tables]
    if missing:
        raise InputError(f"{scenario}: has no table {missing[0]}")
    return dict(tables)


def _read_network(scenario: str) -> dict[str, pd.DataFrame]:
    """Return nodes, links and demands of a scenario; demands of several classes are added up."""
    tables = _tables_of(scenario, ("nodes", "links", "demands"))
    links, demands = tables["links"], tables["demands"]
    if "latency_ms" not in links:
        raise InputError(f"{scenario}: links have no latency_ms, which delays need")
    pair = ["source", "target"]
    rates = demands[[*pair, "rate_mbps"]]
    pairs: pd.DataFrame = rates.groupby(pair, as_index=False, sort=False, observed=True).sum()
    nodes = tables["nodes"]
    return {
        "nodes": nodes[[name for name in NODE_COLUMNS if name in nodes]],
        "links": links[[name for name in LINK_COLUMNS if name in links]],
        "demands": pairs,
    }


SOURCES: Final = {"split": split, "join": join}
