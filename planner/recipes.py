"""Which way of coordinating suits which constraints: the design space of Mukerjee 2018, chapter 1.

Two control planes that decide without each other cost performance, money or responsiveness. Four
mechanisms repair that; which one fits follows from two constraints alone: how much information the
control planes *can* share, and whether they decide over the same resources (1.2.3, Fig. 1.6). What
a system happens to share today is no constraint.
"""

from __future__ import annotations

import csv
import enum
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

from planner.catalogue import find_system, system_names
from planner.errors import InputError, did_you_mean
from planner.system import Mechanism

WordT = TypeVar("WordT", bound="Word")


class Word(enum.Enum):
    """One of a few words."""

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def of(cls: type[WordT], text: str | WordT, what: str) -> WordT:
        """The member of that word; InputError names the nearest."""
        if isinstance(text, cls):
            return text
        words = {str(member): member for member in cls}
        if text not in words:
            near = did_you_mean(str(text), words)
            raise InputError(
                f"{what}: {text} is none of {', '.join(words)}" + (near if "did you mean" in near else "")
            )
        return words[str(text)]


class Information(Word):
    """How much one control plane can tell another."""

    NONE = "none"
    INCOMPLETE = "incomplete"
    COMPLETE = "complete"


class Resources(Word):
    """Whether the control planes decide over the same devices."""

    DISJOINT = "disjoint"
    PARTIAL = "partial"
    FULL = "full"


class Separation(Word):
    """Why there are two control planes."""

    LAYERING = "layering"
    COMPANIES = "companies"
    DEPARTMENTS = "departments"
    TIMESCALE = "timescale"
    GRANULARITY = "granularity"
    LINE_RATE = "line-rate"


CAN_SHARE: Final[Mapping[Separation, tuple[Information, str]]] = {
    Separation.LAYERING: (
        Information.COMPLETE,
        "layers have one owner and are split for modularity only: nothing stops them from telling all",
    ),
    Separation.DEPARTMENTS: (
        Information.COMPLETE,
        "within a company no business reason forbids telling all",
    ),
    Separation.COMPANIES: (
        Information.INCOMPLETE,
        "companies keep what their business rests on, such as costs, to themselves",
    ),
    Separation.TIMESCALE: (
        Information.INCOMPLETE,
        "the slow control plane cannot tell what it has not computed yet when the fast one must act",
    ),
    Separation.GRANULARITY: (
        Information.INCOMPLETE,
        "the coarse control plane does not know the fine state that the local ones decide on",
    ),
}
"""How much can be shared, by why control is split (1.3); line rate is outside the recipes (5.2)."""

SPACE: Final[Mapping[tuple[Information, Resources], tuple[Mechanism, ...]]] = {
    **dict.fromkeys(((Information.NONE, resources) for resources in Resources), (Mechanism.REACTION,)),
    **dict.fromkeys(
        ((Information.COMPLETE, resources) for resources in Resources), (Mechanism.TRANSPARENCY,)
    ),
    (Information.INCOMPLETE, Resources.DISJOINT): (Mechanism.PRIORITY_RANKING,),
    (Information.INCOMPLETE, Resources.FULL): (Mechanism.HIERARCHICAL_PARTITIONING,),
    # Fig. 1.6 has no area of its own for it: each mechanism suits its part of the resources
    (Information.INCOMPLETE, Resources.PARTIAL): (
        Mechanism.HIERARCHICAL_PARTITIONING,
        Mechanism.PRIORITY_RANKING,
    ),
}
"""The mechanisms of each cell of the design space (1.2.3)."""

WHY: Final[Mapping[Mechanism, str]] = {
    Mechanism.REACTION: "nothing can be told, so each control plane adapts to what it sees of the other's "
    "decisions in the network",
    Mechanism.TRANSPARENCY: "all can be told, so what one assumes of the other need never be wrong",
    Mechanism.PRIORITY_RANKING: "a ranked list tells what each would like of the other's own resources, and "
    "not why",
    Mechanism.HIERARCHICAL_PARTITIONING: "both decide over the same resources: a slow or coarse global "
    "decision has priority, fast or fine local ones use the slack it leaves",
}

OUTSIDE: Final = (
    "line-rate systems such as ECN, which may have to send a message with every packet, are outside the "
    "recipes (Mukerjee 2018, 5.2): what they can say is so little that it is close to reaction"
)


@dataclass(frozen=True, kw_only=True)
class Known:
    """A system of Table 1.1. `resources` are several where the table names several."""

    id: str
    name: str
    context: str
    mechanism: Mechanism
    separations: tuple[Separation, ...]
    information: Information
    resources: tuple[Resources, ...]
    row: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """A mechanism for a set of constraints, and what speaks for it.

    mechanisms  one; two where each suits a part of the resources; none outside the recipes
    why         sentences, from the constraints to the mechanism
    known       systems of Table 1.1 with the same constraints, those that use the mechanism first
    designs     (system, design) of this toolkit that implement it
    """

    information: Information | None
    resources: Resources
    mechanisms: tuple[Mechanism, ...]
    why: tuple[str, ...]
    known: tuple[Known, ...]
    designs: tuple[tuple[str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "information": None if self.information is None else str(self.information),
            "resources": str(self.resources),
            "mechanisms": [str(mechanism) for mechanism in self.mechanisms],
            "why": list(self.why),
            "known": [system.name for system in self.known],
            "designs": [f"{system}/{design}" for system, design in self.designs],
        }


def recommend(
    *,
    resources: Resources | str,
    information: Information | str | None = None,
    separation: Separation | str | None = None,
    decide_s: float | None = None,
    react_s: float | None = None,
) -> Recommendation:
    """The mechanism that constraints allow, whatever a system does today.

    resources    whether the control planes decide over the same devices
    information  how much they can tell each other; None: what `separation` allows
    separation   why control is split
    decide_s     time that a good decision takes, and
    react_s      time within which events must be answered: where deciding takes longer, no
                 information is there when it is needed, which is a separation by timescale

    raises  InputError for words that are none, or where nothing says what can be shared
    source  Mukerjee 2018, 1.2.3, 1.4 and 5.2
    """
    where = Resources.of(resources, "resources")
    split = None if separation is None else Separation.of(separation, "separation")
    why = []
    can: Information | None = None
    if split is Separation.LINE_RATE:
        return Recommendation(
            information=None, resources=where, mechanisms=(), why=(OUTSIDE,), known=(), designs=()
        )
    if information is not None:
        can = Information.of(information, "information")
        why.append(f"{can} information can be shared, as stated")
        if split is not None and _rank(can) > _rank(CAN_SHARE[split][0]):
            why.append(f"that is more than usual: {CAN_SHARE[split][1]}")
    elif split is not None:
        can, reason = CAN_SHARE[split]
        why.append(f"{can} information can be shared: {reason}")
    slow = _too_slow(decide_s, react_s)
    if slow is not None and (can is None or _rank(can) > _rank(Information.INCOMPLETE)):
        can = Information.INCOMPLETE
        why.append(slow)
    if can is None:
        raise InputError(
            "information: nothing says how much can be shared; give information, separation, or the times "
            "that deciding takes and that events leave"
        )
    mechanisms = SPACE[can, where]
    why += [f"{mechanism}: {WHY[mechanism]}" for mechanism in mechanisms]
    known = [system for system in table_1_1() if can in _allowed(system) and where in system.resources]
    if not any(system.information is can for system in known):
        why.append("no prior work that Table 1.1 knows shares so much over such resources")
    if len(mechanisms) > 1:
        why.append("no recipe covers resources that are shared in part: take each mechanism for its part")
    return Recommendation(
        information=can,
        resources=where,
        mechanisms=mechanisms,
        why=tuple(why),
        known=tuple(sorted(known, key=lambda system: system.mechanism not in mechanisms)),
        designs=tuple(designs_of(mechanisms)),
    )


def _rank(information: Information) -> int:
    return list(Information).index(information)


def _too_slow(decide_s: float | None, react_s: float | None) -> str | None:
    if (decide_s is None) != (react_s is None):
        raise InputError("decide_s and react_s: give both, or neither")
    if decide_s is None or react_s is None:
        return None
    if not (decide_s >= 0 and react_s > 0):
        raise InputError(f"decide_s is {decide_s} and react_s {react_s}, must be at least 0 and above 0")
    if decide_s <= react_s:
        return None
    return (
        f"incomplete information can be shared: a decision takes {decide_s:g} s and events leave "
        f"{react_s:g} s, so what it would tell comes too late"
    )


# --- Table 1.1 ----------------------------------------------------------------------------


@cache
def table_1_1() -> tuple[Known, ...]:
    """The 19 systems that the thesis examines."""
    text = (files("planner_data") / "published" / "recipes.csv").read_text(encoding="utf-8")
    return tuple(
        Known(
            id=row["id"],
            name=row["system"],
            context=row["context"],
            mechanism=Mechanism(row["mechanism"]),
            separations=_separations(row["separation"]),
            information=Information(row["information_sharing"]),
            resources=tuple(Resources(part.strip()) for part in row["shared_resources"].split("/")),
            row=row,
        )
        for row in csv.DictReader(io.StringIO(text))
    )


def _separations(text: str) -> tuple[Separation, ...]:
    """`Administration boundary, soft or hard` and the like, as the table has it."""
    if not text.startswith("Administration"):
        return (Separation(text.lower()),)
    words = {"soft": Separation.DEPARTMENTS, "hard": Separation.COMPANIES}
    return tuple(separation for word, separation in words.items() if word in text)


def _allowed(system: Known) -> set[Information]:
    """What the system's separation lets it share, and what it shares today."""
    return {CAN_SHARE[separation][0] for separation in system.separations} | {system.information}


@dataclass(frozen=True, kw_only=True)
class Review:
    """What the constraints of a known system allow, beside what it does today."""

    system: Known
    recommended: tuple[Mechanism, ...]
    same: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "system": self.system.name,
            "context": self.system.context,
            "information": str(self.system.information),
            "resources": [str(one) for one in self.system.resources],
            "separation": [str(one) for one in self.system.separations],
            "today": str(self.system.mechanism),
            "recommended": [str(one) for one in self.recommended],
            "same": self.same,
            "why": self.why,
        }


def review() -> tuple[Review, ...]:
    """Every system of Table 1.1, judged by its constraints alone."""
    return tuple(_reviewed(system) for system in table_1_1())


AT_LINE_RATE: Final = {"cc_aqm"}
"""Routers mark or drop at line rate, the thesis' own example of what its recipes leave out (5.2)."""


def _reviewed(system: Known) -> Review:
    if system.id in AT_LINE_RATE:
        return Review(system=system, recommended=(), same=False, why=OUTSIDE)
    found: dict[Mechanism, None] = {}
    reasons = []
    for separation in system.separations:
        for resources in system.resources:
            advice = recommend(resources=resources, separation=separation)
            found |= dict.fromkeys(advice.mechanisms)
            reasons.append(advice.why[0])
    same = set(found) == {system.mechanism}
    why = "; ".join(dict.fromkeys(reasons))
    return Review(system=system, recommended=tuple(found), same=same, why=why)


def designs_of(mechanisms: Sequence[Mechanism]) -> list[tuple[str, str]]:
    """(system, design) of this toolkit that coordinate by one of the mechanisms."""
    return [
        (name, design.name)
        for name in system_names()
        for design in find_system(name).designs
        if design.mechanism in mechanisms
    ]
