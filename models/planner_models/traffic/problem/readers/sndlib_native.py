"""Native text syntax of SNDlib.

```
?SNDlib native format; type: network; version: 1.0
NODES ( <node> ( <x> <y> ) ... )
LINKS ( <link> ( <source> <target> ) <capacity> <capacity cost> <routing cost> <setup cost>
        ( <module capacity> <module cost> ... ) ... )
DEMANDS ( <demand> ( <source> <target> ) <routing unit> <value> <longest path> ... )
```
Each item has its own line. Identifiers may contain blanks and the like, encoded as in a URL (`New%20York`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from planner.errors import InputError
from planner.io.text_files import read_text
from planner_models.traffic.problem.readers import node_labels
from planner_models.traffic.problem.readers.file_errors import FileErrors, shorten
from planner_models.traffic.problem.readers.sndlib_network import Demand, Link, Network, NetworkRows

HEADER: Final = "?SNDlib native format; type: network; version: 1.0"
SECTIONS: Final = ("META", "NODES", "LINKS", "DEMANDS", "ADMISSIBLE_PATHS")


def parse(path: Path) -> Network:
    """Read the network of a text file; faults of single items are in its `faults`."""
    lines = read_text(path).split("\n")
    _require_header(path, next((line for line in lines if line.strip()), ""))
    network = Network(FileErrors(path.name))
    for location, section, words in _items(path, lines, network.faults):
        match section:
            case "NODES":
                _add_node(network, location, words)
            case "LINKS":
                _add_link(network, location, words)
            case "DEMANDS":
                _add_demand(network, location, words)
            case "META" if words[0] == "unit":
                network.unit = words[-1]
    return network


def _require_header(path: Path, line: str) -> None:
    words = re.split(r"[\s;:]+", line.strip())
    if words[:3] != ["?SNDlib", "native", "format"]:
        what = f"begins with '{shorten(line.strip())}'" if line else "is empty"
        raise InputError(f"{path.name}: {what}, must be XML or begin with '{HEADER}'")
    if words[3:5] != ["type", "network"]:
        raise InputError(f"{path.name}: is of type '{' '.join(words[4:5])}', must be '{HEADER}'")


def _items(path: Path, lines: Sequence[str], faults: FileErrors) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each item of each section: place, section and words, which include parentheses.

    An item ends with its line, unless a parenthesis is open.
    """
    section, depth = "", 0
    location, words = "", list[str]()
    for number, line in enumerate(lines, start=1):
        here = f"{path.name} line {number}"
        for word in re.findall(r"[()]|[^\s()]+", line.partition("#")[0] if not line.startswith("?") else ""):
            if depth == 0:
                if word == "(" and section:
                    depth = 1
                    continue
                section = word  # items of an unknown section are skipped
                if word not in SECTIONS:
                    rule = "must be a section"
                    faults.add(here, f": is '{shorten(word)}', {rule}", rule=rule, near=(word, SECTIONS))
                continue
            depth += (word == "(") - (word == ")")
            if depth > 0:
                location = location if words else here
                words.append(word)
                continue
            if words:
                yield location, section, words
            section, words = "", []
        if words and depth == 1:
            yield location, section, words
            words = []
    if depth:
        faults.add(path.name, f": ends within {section}, a closing parenthesis is missing")


def _split_groups(words: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the words outside parentheses, and the words within each pair of parentheses."""
    outside: list[str] = []
    groups: list[list[str]] = []
    inside = False
    for word in words:
        if word == "(":
            inside = True
            groups.append([])
        elif word == ")":
            inside = False
        else:
            (groups[-1] if inside else outside).append(word)
    return outside, groups


def _add_node(network: Network, location: str, words: list[str]) -> None:
    outside, groups = _split_groups(words)
    position = groups[0] if groups else []
    x, y = position if len(position) == 2 else (None, None)
    if len(outside) != 1 or len(position) not in (0, 2):
        network.faults.add(location, ": must be '<node> ( <x> <y> )'")
    if outside:  # even with a fault, so that its links and demands are no further faults
        network.nodes.append((location, node_labels.decode(outside[0]), x, y))


def _add_link(network: Network, location: str, words: list[str]) -> None:
    outside, groups = _split_groups(words)
    modules = groups[1] if len(groups) > 1 else []
    # behind the id: pre-installed capacity and its cost, routing cost, setup cost
    if len(outside) != 5 or not groups or len(groups[0]) != 2 or len(modules) % 2:
        network.faults.add(
            location,
            ": must be '<link> ( <source> <target> ) <capacity> <cost> <routing cost> <setup cost> "
            "( <module capacity> <module cost> ... )'",
        )
        return
    source, target = map(node_labels.decode, groups[0])
    pairs: list[tuple[str | None, str | None]] = list(zip(modules[::2], modules[1::2], strict=True))
    link = Link(location, source, target, (outside[1], outside[2]), pairs, outside[3], outside[4])
    network.links.append(link)


def _add_demand(network: Network, location: str, words: list[str]) -> None:
    outside, groups = _split_groups(words)
    if len(outside) not in (3, 4) or len(groups) != 1 or len(groups[0]) != 2:
        network.faults.add(
            location,
            ": must be '<demand> ( <source> <target> ) <routing unit> <demand value> <longest path>'",
        )
        return
    source, target = map(node_labels.decode, groups[0])
    network.demands.append(Demand(location, source, target, outside[1], outside[2]))


def format_lines(network: NetworkRows) -> Iterator[str]:
    """Yield the lines of a text file."""
    encode = node_labels.encode
    yield HEADER
    yield "\nNODES ("
    for node, x, y in network.positions():
        yield f"  {encode(node)} ( {x} {y} )"
    yield ")\n\nLINKS ("
    for number, (tail, head, capacity, cost) in enumerate(network.links, start=1):
        yield f"  L{number} ( {encode(tail)} {encode(head)} ) {capacity} 0 {cost} 0 ( )"
    yield ")\n\nDEMANDS ("
    for number, (source, target, rate) in enumerate(network.demands, start=1):
        yield f"  D{number} ( {encode(source)} {encode(target)} ) 1 {rate} UNLIMITED"
    yield ")"
