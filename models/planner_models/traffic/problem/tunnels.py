"""Table `tunnels`: the paths that operators have configured, RSVP-TE tunnels or lists of segments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from planner.contract.table import Table, label, number
from planner_models.networks.node_lists import LinkNames
from planner_models.networks.tunnels import TUNNEL_COLUMNS, Tunnels, read_paths

if TYPE_CHECKING:
    from planner_models.traffic.problem.tables import TrafficTables

TUNNELS: Final = Table(
    name="tunnels",
    about="a path that is configured for a demand; a demand may have several",
    columns={
        **{name: column for name, column in TUNNEL_COLUMNS.items() if name != "name"},
        "kind": label(
            "explicit (each step is a link, as in RSVP-TE) or segments (between the nodes listed, traffic "
            "follows the shortest paths by weight, with ECMP); blank: explicit",
            optional=True,
            may_be_blank=True,
        ),
        "weight": number(
            "its part of the demand, against those of the demand's other tunnels, where nobody optimizes; "
            "blank: 1",
            at_least=0,
            at_most=1e12,
            optional=True,
            may_be_blank=True,
        ),
        "name": TUNNEL_COLUMNS["name"],
    },
    may_be_empty=True,
)


def read_tunnels(problem: TrafficTables) -> tuple[Tunnels, list[str]]:
    """Return the tunnels of a problem that has the table, and all faults in its rows."""
    assert problem.tunnels is not None
    return read_paths(problem.tunnels, problem.nodes["node"].tolist(), find_links(problem))


def find_links(problem: TrafficTables) -> LinkNames:
    """Return the links of a problem by their ends and numbers, those that are down too."""
    ends = zip(problem.tail.tolist(), problem.head.tolist(), problem.parallel.tolist(), strict=True)
    return LinkNames(ends, _links_down(problem))


def _links_down(problem: TrafficTables) -> Iterator[tuple[int, int, int]]:
    """Yield the ends and the number of each link that is down."""
    down = problem.down
    if down is None:
        return
    yield from zip(
        problem.find_nodes(down["tail"]).tolist(),
        problem.find_nodes(down["head"]).tolist(),
        np.maximum(down["parallel"].to_numpy(int), 1).tolist(),  # 0: there are no others
        strict=True,
    )
