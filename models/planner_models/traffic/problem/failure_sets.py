"""Sets of failures: those of the table `failures`, every single line, node, or pair of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.table import Table, label, number
from planner.contract.tables import file_name, row_name, shorten_faults
from planner.contract.tolerances import EXACT, exceeds
from planner.errors import InputError
from planner_models.traffic.problem.network_elements import DuplexLines, ElementNames

if TYPE_CHECKING:
    from planner_models.traffic.problem.tables import TrafficTables

FailureSource = Literal["table", "links", "nodes", "double_links"]
FAILURE_SOURCES: Final[tuple[FailureSource, ...]] = ("table", "links", "nodes", "double_links")
FailuresParameter = Annotated[
    FailureSource | None,
    Field(
        description="failures to survive; table: those of the table failures; links: every single line, both "
        "directions together; nodes: every single node with its links; double_links: every pair of lines; "
        "default: the table where there is one, else every single line"
    ),
]
PAIR: Final = " + "  # between the names of two lines that fail together

FAILURES: Final = Table(
    name="failures",
    about="an element that fails, together with those of all rows of the same failure",
    columns={
        "failure": label("name of the failure"),
        "member": label("a link, tail->head, a line, tail<->head, or a node; * ? [..] match any names"),
        "probability": number(
            "probability of the failure, the same in all its rows; no two failures occur at a time, and the "
            "rest, up to 1, is that nothing fails",
            more_than=0,
            at_most=1,
            share=True,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("failure", "member"),
    may_be_empty=True,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FailureSet:
    """Failures of links that a plan is examined under, or has to survive; S of them, one at a time.

    names        (S,) name of each failure
    start, link  links that failure s takes down, rows of `links` ascending: link[start[s]:start[s + 1]]
    links        number of links of the problem, E
    probability  (S,) of each; the rest, up to 1, is that nothing fails; None where it is unknown

    A failure may take no link down: links that are down already stay down.
    """

    names: tuple[str, ...]
    start: Ints
    link: Ints
    links: int
    probability: Floats | None = None

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of_rows(
        cls, names: list[str], rows: list[Ints], links: int, probability: Floats | None = None
    ) -> FailureSet:
        """Return the set of failures with these rows of `links`."""
        start = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
        link = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        return cls(names=tuple(names), start=start, link=link, links=links, probability=probability)

    @cached_property
    def link_down(self) -> Bools:
        """(S, E) whether a failure takes a link down."""
        down = np.zeros((len(self), self.links), dtype=bool)
        down[np.repeat(np.arange(len(self)), np.diff(self.start)), self.link] = True
        return down

    @property
    def probability_of_none(self) -> float | None:
        """Probability that nothing fails; None where probabilities are unknown."""
        return None if self.probability is None else max(0.0, 1.0 - float(self.probability.sum()))

    def with_probability(self, probability: float) -> FailureSet:
        """Return the set of failures with this probability each."""
        return replace(self, probability=np.full(len(self), probability))

    def select(self, rows: Ints) -> FailureSet:
        """Return the set of some of the failures, by row; probabilities stay."""
        links_of = [self.link[self.start[row] : self.start[row + 1]] for row in rows.tolist()]
        names = [self.names[row] for row in rows.tolist()]
        probability = None if self.probability is None else self.probability[rows]
        return FailureSet.of_rows(names, links_of, self.links, probability)


def join_sets(sets: Sequence[FailureSet]) -> FailureSet:
    """Return the failures of several sets of a problem as one; probabilities only where all have them."""
    size = [len(set_.link) for set_ in sets]
    offset = np.cumsum([0, *size])[:-1]
    start = np.concatenate([[0], *(set_.start[1:] + shift for set_, shift in zip(sets, offset, strict=True))])
    probabilities = [set_.probability for set_ in sets if set_.probability is not None]
    return FailureSet(
        names=tuple(name for set_ in sets for name in set_.names),
        start=start.astype(np.int64),
        link=np.concatenate([set_.link for set_ in sets]),
        links=sets[0].links,
        probability=np.concatenate(probabilities) if len(probabilities) == len(sets) else None,
    )


def build_failure_set(problem: TrafficTables, failures: FailureSource | None = None) -> FailureSet:
    """Return the failures of a problem, see `FailuresParameter`.

    raises  InputError for "table" where the problem has no table of failures
    """
    if failures is None:
        failures = "links" if problem.failures is None else "table"
    if failures == "table":
        return _from_table(problem)
    if failures == "nodes":
        return _single_nodes(problem)
    single = _single_lines(problem)
    return single if failures == "links" else _pairs(single)


def _from_table(problem: TrafficTables) -> FailureSet:
    if problem.failures is None:
        raise InputError("failures is 'table', but the problem has no table failures")
    read, faults = read_failures(problem)
    assert not faults, "the problem is valid"
    return FailureSet.of_rows(read.names, read.rows, len(problem.links), read.probability)


def _single_lines(problem: TrafficTables) -> FailureSet:
    lines = DuplexLines.group(problem, both_ways=True)
    order = np.argsort(lines.of_link, kind="stable")
    size = np.bincount(lines.of_link, minlength=len(lines.names))
    start = np.r_[0, np.cumsum(size)].astype(np.int64)
    return FailureSet(names=tuple(lines.names), start=start, link=order, links=len(problem.links))


def _single_nodes(problem: TrafficTables) -> FailureSet:
    names = problem.nodes["node"].astype(str).tolist()
    return FailureSet.of_rows(names, _links_of_nodes(problem), len(problem.links))


def _pairs(single: FailureSet) -> FailureSet:
    """Return all pairs of failures."""
    first, second = np.triu_indices(len(single), 1)
    size = np.diff(single.start)
    start = np.r_[0, np.cumsum(size[first] + size[second])].astype(np.int64)
    link = np.empty(int(start[-1]), dtype=np.int64)
    for offset, member in ((start[:-1], first), (start[:-1] + size[first], second)):
        each = np.repeat(np.arange(len(first)), size[member])
        step = np.arange(len(each)) - np.repeat(np.cumsum(size[member]) - size[member], size[member])
        link[offset[each] + step] = single.link[single.start[member[each]] + step]
    names = tuple(
        single.names[a] + PAIR + single.names[b] for a, b in zip(first.tolist(), second.tolist(), strict=True)
    )
    rows = np.repeat(np.arange(len(first)), np.diff(start))
    return FailureSet(names=names, start=start, link=link[np.lexsort((link, rows))], links=single.links)


def _links_of_nodes(problem: TrafficTables) -> list[Ints]:
    """Return the links at each node, rows ascending."""
    links = np.arange(len(problem.links))
    node = np.r_[problem.tail, problem.head]
    order = np.lexsort((np.r_[links, links], node))
    start = np.searchsorted(node[order], np.arange(1, len(problem.nodes)))
    return np.split(np.r_[links, links][order], start)


class ReadFailures(NamedTuple):
    """Failures of the table: names in its order, the rows of `links` of each, and probabilities (S,)."""

    names: list[str]
    rows: list[Ints]
    probability: Floats | None


def read_failures(problem: TrafficTables) -> tuple[ReadFailures, list[str]]:
    """Return the failures of a problem that has the table, and all faults in its rows.

    Links that are down are no faults.
    """
    frame = problem.failures
    assert frame is not None
    elements = ElementNames(problem, has_down=True)
    of_node = _links_of_nodes(problem)
    members: dict[str, list[Ints]] = {}
    for row, (name, member) in enumerate(zip(frame["failure"], frame["member"], strict=True)):
        where = row_name(frame, "failures", row)
        member_links = members.setdefault(str(name), [np.zeros(0, dtype=np.int64)])
        if "->" in member:
            member_links.append(elements.match_links(member, where))
        else:
            member_links.extend(of_node[node] for node in elements.match_nodes(member, where).tolist())
    probability, faults = _read_probabilities(problem, list(members))
    rows = [np.unique(np.concatenate(parts)) for parts in members.values()]
    unknown = shorten_faults(elements.faults, file_name(frame, "failures"), "that name nothing")
    return ReadFailures(list(members), rows, probability), [*unknown, *faults]


def _read_probabilities(problem: TrafficTables, names: list[str]) -> tuple[Floats | None, list[str]]:
    """Return the probability of each failure, None where none is given, and the faults in them."""
    frame = problem.failures
    assert frame is not None
    if "probability" not in frame or frame["probability"].isna().all():
        return None, []
    where = file_name(frame, "failures")
    probability = frame["probability"].to_numpy(float)
    failure = frame["failure"].astype(str).to_numpy()
    faults = []
    probability_of: dict[str, float] = {}
    for row in np.flatnonzero(~np.isnan(probability)).tolist():
        name, value = failure[row], float(probability[row])
        if probability_of.setdefault(name, value) != value:
            faults.append(
                f"{row_name(frame, 'failures', row)}: probability of failure '{name}' is {value:g}, but "
                f"{probability_of[name]:g} in an earlier row"
            )
    faults = shorten_faults(faults, where, "with another probability")
    missing = [
        f"{row_name(frame, 'failures', int(np.argmax(failure == name)))}: failure '{name}' has no "
        "probability, but others have one"
        for name in names
        if name not in probability_of
    ]
    faults += shorten_faults(missing, where, "of failures without a probability")
    total = sum(probability_of.values())
    if exceeds(total, 1.0, relative=EXACT):
        faults.append(f"{where}: probabilities of the failures add up to {total:g}, must be at most 1")
    return np.array([probability_of.get(name, np.nan) for name in names]), faults
