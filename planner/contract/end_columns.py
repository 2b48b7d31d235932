"""Columns of the two ends of a link or of a demand, by the names that other tools give to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

from planner.contract.units import plain

LINK_ENDS: Final = ("tail", "head")
ENDS: Final = (LINK_ENDS, ("source", "target"), ("source_rack", "target_rack"), ("block", "other_block"))
"""Our names of the first and the second end: of links, of demands, and of both between racks or blocks."""
DEMAND_ENDS: Final = ENDS[1:3]
NODE_COLUMNS: Final = frozenset({"node", "rack", "block", "cluster", "switch"})
"""Our names of the column of a node's own name, in a table with a row for each node."""
OTHER_NAMES: Final = (
    (
        frozenset({"source", "src", "origin", "orig", "ingress", "quelle", "quell", "origine", "origen"}),
        frozenset(
            {"target", "destination", "dest", "dst", "sink", "egress", "ziel", "destino", "destinazione"}
        ),
    ),
    (frozenset({"from"}), frozenset({"to"})),
    (frozenset({"von"}), frozenset({"nach", "bis", "zu"})),
    (frozenset({"de", "depuis", "desde", "da"}), frozenset({"vers", "hasta"})),
    (frozenset({"tail"}), frozenset({"head"})),
    (
        frozenset({"start", "anfang", "anfangs", "début", "départ", "dedépart", "inicio", "inizio"}),
        frozenset({"end", "ende", "endknoten", "endpunkt", "fin", "fine", "arrivée", "darrivée"}),
    ),
    (frozenset({"u"}), frozenset({"v"})),
    (frozenset({"a"}), frozenset({"z"})),
    (
        frozenset({"local", "near", "router", "node", "device"}),
        frozenset({"remote", "far", "neighbour", "neighbor", "peer"}),
    ),
    (frozenset({"a"}), frozenset({"b"})),
    (frozenset({"1"}), frozenset({"2"})),
)
"""Names of the first and of the second end that occur together, without case and punctuation."""
UNCLEAR_OF_DEMANDS: Final = (frozenset({"tail"}), frozenset({"head"}))
"""Names that are unclear for demands: an edge goes from its tail to its head, a tunnel from its head end."""
WITH_WORDS: Final = OTHER_NAMES[-2:]
"""Names that say too little alone: without a word beside them, they may be the nodes of a matrix."""
WORDS: Final = re.compile(
    r"endpoint|endpunkt|point|punkt|node|routers?|switch|rack|tor|hostname|host|devices?|sites?|city|pop|"
    r"location|region|block|pod|side|id|name|office|hub|campus|datacenter|metro|(?<=gress)[pc]e$|"
    r"knoten|standort|extr[eé]mit[eé]|extremo|n(?:oe|œ)ud|nodo|sede|(?<=.)end|end(?=.)"
)
"""Words beside them that say what an end is, such as in "From node", "src_id" and "A-end"."""


FINENESS: Final = (
    frozenset({"node", "router", "switch", "hostname", "host", "device", "tor", "pe", "ce"}),
    frozenset({"site", "pop", "city", "location", "office", "hub", "campus", "datacenter", "standort"}),
    frozenset({"metro", "region", "country"}),
)
"""Words for places, the smallest first, where an end of a link has several columns."""
PORT_WORDS: Final = frozenset({"port", "interface", "ip", "ipaddress", "address", "card", "slot", "rackunit"})
"""Words of columns that two ends have each, beside the names of nodes."""


def match_ends(
    columns: Collection[str], column_names: Sequence[str], matches: Mapping[str, Collection[str]]
) -> dict[str, str]:
    """Return the given names of the ends that have none of our names, by our names.

    Both ends must be there, each once, with names that occur together. There are none for a table with the
    ends of both links and demands, as names such as From would not say which are meant.

    columns  our names of the table's columns
    matches  given names by our name, as far as they are known
    """
    pairs = [pair for pair in ENDS if set(pair) <= set(columns)]
    if len(pairs) != 1 or set(pairs[0]) <= set(matches):
        return {}
    (pair,) = pairs
    taken = set(chain.from_iterable(matches.values()))
    free = [name for name in column_names if name not in taken]
    for together in _names_of_ends(pair):
        ends = _match_together(pair, together, free, matches, column_names[:2])
        if len(ends) == len(pair):
            return {ours: name for ours, name in ends.items() if ours not in matches}
    return _match_repeated(pair, column_names, taken)


def _names_of_ends(pair: tuple[str, str]) -> list[tuple[frozenset[str], frozenset[str]]]:
    """Return the names of both ends that occur together, without those that are unclear for demands."""
    is_unclear = pair in DEMAND_ENDS
    return [together for together in OTHER_NAMES if not (is_unclear and together == UNCLEAR_OF_DEMANDS)]


def _match_together(
    pair: tuple[str, str],
    together: tuple[Collection[str], Collection[str]],
    free: Sequence[str],
    matches: Mapping[str, Collection[str]],
    first_two: Sequence[str],
) -> dict[str, str]:
    """Return the only given name of each end, by our name, among names that occur together.

    together   names of the first and of the second end, without case and punctuation
    free       given names that are no column of ours
    first_two  names of the first two columns; of a matrix, the first one is no name of a node. Capital
               letters alone are read there, as small ones may be nodes of a table without a header
    """
    ends = {}
    for ours, names in zip(pair, together, strict=True):
        matched = [name for name in matches.get(ours, ()) if _is_one_of(name, names)]
        candidates = matched or _finest([name for name in free if _is_one_of(name, names)])
        if together in WITH_WORDS:
            stands_first = list(first_two[pair.index(ours) :][:1])
            candidates = [name for name in candidates if _says_enough(name, names, stands_first)]
        if len(candidates) == 1:
            ends[ours] = candidates[0]
    return ends


def _says_enough(name: str, names: Collection[str], stands_first: Collection[str]) -> bool:
    """Return whether a name has a word beside it, or is the capital letter of a column that stands first."""
    return plain(name) not in names or (name in stands_first and name.isupper())


def _match_repeated(
    pair: tuple[str, str], column_names: Sequence[str], taken: Collection[str]
) -> dict[str, str]:
    """Return the first two columns of one name of nodes, the second marked as such, as `Site (2)`."""
    for name in column_names:
        second = f"{name.strip()} (2)"
        if second in column_names and plain(name) not in PORT_WORDS and not {name, second} & set(taken):
            return dict(zip(pair, (name, second), strict=True))
    return {}


def _finest(names: Sequence[str]) -> list[str]:
    """Return the names of the smallest places, a router before its site, where all names say a place."""
    ranks = [
        next((rank for rank, words in enumerate(FINENESS) if names_of_words([name], words)), len(FINENESS))
        for name in names
    ]
    if len(FINENESS) in ranks:  # of a name without such a word nothing is known
        return list(names)
    return [name for name, rank in zip(names, ranks, strict=True) if rank == min(ranks)]


def names_of_words(names: Sequence[str], words: Collection[str]) -> list[str]:
    """Return the names that have one of some words in them, without case and punctuation."""
    return [
        name
        for name in names
        if {plain(word) for word in re.findall(r"[^\W_]+", name)} & set(words) or plain(name) in words
    ]


def is_node_word(name: str) -> bool:
    """Return whether a name is a word for the kind of an end or for its ports, such as Site or Port."""
    letters = plain(name)
    return bool(letters) and (not WORDS.sub("", letters) or letters in PORT_WORDS)


def _is_one_of(name: str, names: Collection[str]) -> bool:
    """Return whether a name is one of some names, with or without words beside it."""
    return plain(name) in names or _bare(name) in names


def _bare(name: str) -> str:
    """Return a name without case, punctuation and the words beside it; as it is where these are all.

    The head end of a tunnel is its ingress, whereas the head of an edge is its second end.
    """
    letters = plain(name).replace("headend", "ingress").replace("tailend", "egress")
    return WORDS.sub("", letters) or letters
