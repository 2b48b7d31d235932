"""Missing statements of an SNDlib file: directions, the module of each link, the unit; with assumptions.

SNDlib states in a separate model file whether links and demands are directed.
"""

from __future__ import annotations

from collections import Counter

from planner.contract.notes import add_note
from planner_models.traffic.problem.readers.file_errors import shorten
from planner_models.traffic.problem.readers.sndlib_network import Link, Network


def add_doubled_links(network: Network) -> None:
    """Add a fault where every link has its opposite: read as links both ways, each line would count twice."""
    count = Counter((link.source, link.target) for link in network.links)
    if not count or any(count[ends] != count[ends[::-1]] for ends in count):
        return
    first = network.links[0]
    other = next(link for link in network.links if _is_opposite(link, first))
    faults = network.faults
    names = []
    for link in (first, other):
        location = link.place.removeprefix(faults.file).lstrip(": ")
        names.append(f"{location} ({shorten(link.source)} to {shorten(link.target)})")
    faults.add(
        faults.file,
        f": every link has its opposite, such as {' and '.join(names)}: set link_direction: "
        '"directed" if each is one direction of a line, "bidirected" if each is a line of its own that goes '
        "both ways",
    )


def _is_opposite(link: Link, other: Link) -> bool:
    return (link.source, link.target) == (other.target, other.source)


def note_links(network: Network, *, link_direction: str | None, module: str | None, unit: str | None) -> None:
    """Add a note on the assumptions about links and rates; the arguments are the user's, None: not stated."""
    file = network.faults.file
    if link_direction is None:
        add_note(
            f'assumed: {file}: each link is one link each way (link_direction = "bidirected"), as SNDlib '
            "files do not say it"
        )
    if module is None and any(_has_choice(link) for link in network.links):
        add_note(
            f"assumed: {file}: a link has its pre-installed capacity, else that of its smallest module "
            '(module = "preinstalled")'
        )
    if unit is None and not network.unit:
        add_note(f"assumed: {file}: rates are in Mbit/s, as the file names no unit; unit sets another one")


def note_demands(network: Network, *, demand_direction: str | None) -> None:
    """Add a note on the direction of demands, unless it is said or some pair has demands both ways."""
    pairs = {(demand.source, demand.target) for demand in network.demands}
    if demand_direction is None and not any(pair[::-1] in pairs for pair in pairs):
        add_note(
            f"assumed: {network.faults.file}: demands go from source to target only, and no pair has one "
            'each way; demand_direction = "undirected" adds the way back'
        )


def _has_choice(link: Link) -> bool:
    """Return whether a link has several capacities, of which one is taken; those of 0 are none."""
    capacities = [link.preinstalled[0], *(capacity for capacity, _ in link.modules)]
    return len([text for text in capacities if text is not None and text.strip("0. ")]) > 1
