"""Design space of coordination: mechanisms by constraints, after Mukerjee 2018, chapter 1.

Two control planes that decide independently lose performance, money or responsiveness. Four mechanisms
reduce this loss. The suitable mechanism follows from two constraints: how much information the control
planes *can* share, and whether they decide over the same resources (1.2.3, Fig. 1.6). The information that
a system shares today is not a constraint. A third axis says who decides: where information flows one way,
the control plane that receives it; where it flows both ways, both together (Table 1.1).
"""

from __future__ import annotations

import csv
import enum
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

import pandas as pd

from planner.contract.design import Mechanism
from planner.coordination import measured_examples, measurement
from planner.coordination.measured_examples import Evidence, Example
from planner.coordination.worst_cases import WorstCase, worst_cases_of
from planner.errors import InputError, did_you_mean
from planner.runs.result import Result
from planner.scenarios.catalogue import find_system, system_names

WordT = TypeVar("WordT", bound="Word")


class Word(enum.Enum):
    """An enumeration of words."""

    def __str__(self) -> str:
        return str(self.value)

    @classmethod
    def of(cls: type[WordT], text: str | WordT, what: str) -> WordT:
        """Return the member of that word; raise InputError that names the nearest."""
        if isinstance(text, cls):
            return text
        words = {str(member): member for member in cls}
        if text not in words:
            near = did_you_mean(str(text), words)
            raise InputError(
                f"{what} is '{text}', must be one of {', '.join(words)}"
                + (near if "did you mean" in near else "")
            )
        return words[str(text)]


class Information(Word):
    """Amount of information that control planes can share."""

    NONE = "none"
    INCOMPLETE = "incomplete"
    COMPLETE = "complete"


class Resources(Word):
    """Overlap of the resources that the control planes decide over."""

    DISJOINT = "disjoint"
    PARTIAL = "partial"
    FULL = "full"


class Flow(Word):
    """Ways in which information flows between the control planes."""

    NONE = "none"
    ONE_WAY = "one-way"
    TWO_WAY = "two-way"


class Separation(Word):
    """Reason for separate control planes."""

    LAYERING = "layering"
    COMPANIES = "companies"
    DEPARTMENTS = "departments"
    TIMESCALE = "timescale"
    GRANULARITY = "granularity"
    LINE_RATE = "line-rate"


CAN_SHARE: Final[Mapping[Separation, tuple[Information, str]]] = {
    Separation.LAYERING: (
        Information.COMPLETE,
        "layers have one owner and are split for modularity only, so they can share all information",
    ),
    Separation.DEPARTMENTS: (
        Information.COMPLETE,
        "within a company no business reason forbids sharing all information",
    ),
    Separation.COMPANIES: (
        Information.INCOMPLETE,
        "companies keep business secrets, such as costs, to themselves",
    ),
    Separation.TIMESCALE: (
        Information.INCOMPLETE,
        "the fast control plane must act before the slow one has computed its information",
    ),
    Separation.GRANULARITY: (
        Information.INCOMPLETE,
        "the coarse control plane does not know the detailed state of the local ones",
    ),
}
"""Information that can be shared, by reason for separation (1.3); line rate is outside the recipes (5.2)."""

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
    Mechanism.REACTION: "no information can be shared, so each control plane adapts to the effects that it "
    "observes of the other's decisions",
    Mechanism.TRANSPARENCY: "all information can be shared, so no control plane makes assumptions about "
    "the other",
    Mechanism.PRIORITY_RANKING: "a ranked list states preferences among the other's resources without the "
    "reasons",
    Mechanism.HIERARCHICAL_PARTITIONING: "both decide over the same resources: a slow or coarse global "
    "decision has priority, fast or fine local decisions use its slack",
}

FLOWS: Final[Mapping[Flow, str]] = {
    Flow.NONE: "nothing is sent: each control plane observes only the effects of the other's decisions",
    Flow.ONE_WAY: "information flows one way: the control plane that receives it decides, and relies on what "
    "it receives",
    Flow.TWO_WAY: "information flows both ways: both state their preferences, and decide together",
}
"""Who decides, by the flow of information (Table 1.1, information flow and decision making)."""

OUTSIDE: Final = (
    "line-rate systems such as ECN, which may have to send a message with every packet, are outside the "
    "recipes (Mukerjee 2018, 5.2): they can share so little information that it is close to reaction"
)


@dataclass(frozen=True, kw_only=True)
class PriorSystem:
    """A system of Table 1.1, with all separations, resources and flows that the table names.

    assumptions  about the other control plane, which may be wrong
    decides      who decides
    problems     that bad decisions cause
    command      that runs an example of it; "" where planner has none
    reason       why planner has none; "" where it has one
    """

    id: str
    name: str
    context: str
    mechanism: Mechanism
    separations: tuple[Separation, ...]
    information: Information
    resources: tuple[Resources, ...]
    flows: tuple[Flow, ...]
    control_planes: str
    assumptions: str
    decides: str
    problems: str
    command: str
    reason: str
    row: Mapping[str, str]

    @property
    def runs(self) -> str:
        """The command of an example, or the reason why there is none."""
        return self.command or f"text only: {self.reason}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Recommendation(Result):
    """A mechanism for a set of constraints, with reasons.

    mechanisms  one; two where each suits a part of the resources; none outside the recipes
    why         reasons, from the constraints to the mechanism
    known       systems of Table 1.1 with the same constraints, those that use the mechanism first
    designs     (system, design) of this toolkit that implement it
    evidence    measured design with this mechanism, nearest to the stated age of information, beside the
                others of its system; None without
    worst       measured worst events of designs with this mechanism
    """

    information: Information | None
    resources: Resources
    mechanisms: tuple[Mechanism, ...]
    why: tuple[str, ...]
    known: tuple[PriorSystem, ...]
    designs: tuple[tuple[str, str], ...]
    evidence: Evidence | None = None
    worst: tuple[WorstCase, ...] = ()

    @property
    def example(self) -> Example | None:
        """The measured design with this mechanism."""
        return None if self.evidence is None else self.evidence.example

    @property
    def verdict(self) -> str:
        """The recommended mechanisms, in one sentence."""
        return " and ".join(map(str, self.mechanisms)) or "outside the recipes"

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each design of this toolkit that implements the recommendation."""
        return pd.DataFrame(self.designs, columns=["system", "design"])

    def titled(self) -> Recommendation:
        """Return the recommendation with titles of systems and designs, for people to read."""
        systems = {name: find_system(name) for name, _ in self.designs}
        designs = [(systems[name].label, systems[name].design(design).label) for name, design in self.designs]
        return replace(self, designs=tuple(designs))

    def summary(self) -> list[str]:
        """Return the mechanisms and the reasons."""
        evidence = [] if self.evidence is None else self.evidence.sentences()
        return [
            self.verdict,
            *(f"- {sentence}" for sentence in (*self.why, *evidence, *self.worst_sentences())),
        ]

    def worst_sentences(self) -> list[str]:
        """Return a sentence for each measured worst case over events."""
        return [f"worst case over events: {case.words()}" for case in self.worst]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "information": None if self.information is None else str(self.information),
            "resources": str(self.resources),
            "mechanisms": [str(mechanism) for mechanism in self.mechanisms],
            "why": list(self.why),
            "known": [system.name for system in self.known],
            "designs": [f"{system}/{design}" for system, design in self.designs],
            "example": None if self.evidence is None else self.evidence.to_dict(),
            "worst_cases": [case.to_dict() for case in self.worst],
        }


def recommend(
    *,
    resources: Resources | str,
    information: Information | str | None = None,
    separation: Separation | str | None = None,
    flow: Flow | str | None = None,
    decide_s: float | None = None,
    react_s: float | None = None,
    age_s: float | None = None,
) -> Recommendation:
    """Return the mechanism that suits given constraints.

    resources    overlap of the resources of the control planes
    information  information that they can share; None: what `separation` allows
    separation   reason for separate control planes
    flow         ways in which information can flow; "none" leaves reaction; None: not stated
    decide_s     time to compute a good decision, and
    react_s      time to respond to events: if shorter than `decide_s`, information comes too late, which
                 is a separation by timescale
    age_s        age of the information when it is used, for the measured example

    raises  InputError for unknown words, or if no argument determines the information
    source  Mukerjee 2018, 1.2.3, 1.4 and 5.2
    """
    where = Resources.of(resources, "resources")
    split = None if separation is None else Separation.of(separation, "separation")
    if split is Separation.LINE_RATE:
        return Recommendation(
            information=None, resources=where, mechanisms=(), why=(OUTSIDE,), known=(), designs=()
        )
    way = None if flow is None else Flow.of(flow, "flow")
    can, why = _usable_information(
        *_information_to_share(information, split), way, _too_slow(decide_s, react_s)
    )
    if age_s is not None and not age_s >= 0:
        raise InputError(f"age_s is {age_s}, must be at least 0")
    mechanisms = SPACE[can, where]
    systems = _systems_with(can, where, way)
    return Recommendation(
        information=can,
        resources=where,
        mechanisms=mechanisms,
        why=(*why, *_reasons_for(mechanisms, can, way, systems)),
        known=tuple(sorted(systems, key=lambda system: system.mechanism not in mechanisms)),
        designs=tuple(designs_of(mechanisms)),
        evidence=measured_examples.collect_evidence(
            [str(mechanism) for mechanism in mechanisms], *measurement.load_release(), age_s or decide_s
        ),
        worst=tuple(worst_cases_of(mechanisms)),
    )


def _usable_information(
    can: Information | None, why: Sequence[str], way: Flow | None, slow: str | None
) -> tuple[Information, list[str]]:
    """Return the information that flows and comes in time, of that which can be shared, with the reasons.

    slow  why complete information comes too late; None where it does not
    """
    why = list(why)
    if way is Flow.NONE and can is not Information.NONE:
        can = Information.NONE
        why.append("no information is shared: none flows, as stated")
    if slow is not None and (can is None or _rank(can) > _rank(Information.INCOMPLETE)):
        can = Information.INCOMPLETE
        why.append(slow)
    if can is None:
        raise InputError(
            "information: how much can be shared is unknown; give information, separation, or the times to "
            "decide and to react"
        )
    return can, why


def _reasons_for(
    mechanisms: Sequence[Mechanism], can: Information, way: Flow | None, systems: Sequence[PriorSystem]
) -> Iterator[str]:
    """Yield the reasons for mechanisms, and the limits of a recommendation."""
    yield from (f"{mechanism}: {WHY[mechanism]}" for mechanism in mechanisms)
    if way is not None:
        yield FLOWS[way]
    if not any(system.information is can for system in systems):
        yield "no prior work in Table 1.1 shares this much information over such resources"
    if len(mechanisms) > 1:
        yield "no recipe covers partly shared resources: use each mechanism for its part"


def _systems_with(
    information: Information, resources: Resources, flow: Flow | None = None
) -> list[PriorSystem]:
    """Return the systems of Table 1.1 with such resources, and flow, that can share this information."""
    return [
        system
        for system in table_1_1()
        if information in _shareable_information(system)
        and resources in system.resources
        and (flow is None or flow in system.flows)
    ]


def _information_to_share(
    information: Information | str | None, split: Separation | None
) -> tuple[Information | None, list[str]]:
    """Return the information that control planes can share, as stated or by their separation, and why."""
    if information is not None:
        can = Information.of(information, "information")
        why = [f"{can} information can be shared, as stated"]
        if split is not None and _rank(can) > _rank(CAN_SHARE[split][0]):
            why.append(f"this is more than usual: {CAN_SHARE[split][1]}")
        return can, why
    if split is None:
        return None, []
    can, reason = CAN_SHARE[split]
    return can, [f"{can} information can be shared: {reason}"]


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
        f"incomplete information can be shared: a decision takes {decide_s:g} s, but events need a response "
        f"within {react_s:g} s, so complete information comes too late"
    )


# --- Table 1.1 ----------------------------------------------------------------------------


@cache
def table_1_1() -> tuple[PriorSystem, ...]:
    """Return the 19 systems that the thesis examines."""
    text = (files("planner_data") / "published" / "recipes.csv").read_text(encoding="utf-8")
    return tuple(
        PriorSystem(
            id=row["id"],
            name=row["system"],
            context=row["context"],
            mechanism=Mechanism(row["mechanism"]),
            separations=_separations(row["separation"]),
            information=Information(row["information_sharing"]),
            resources=tuple(Resources(resource.strip()) for resource in row["shared_resources"].split("/")),
            flows=_flows(row["information_flow"]),
            control_planes=row["control_planes"],
            assumptions=row["incorrect_assumptions"],
            decides=row["decision_making"],
            problems=row["problems_from_bad_decisions"],
            command=row["command"],
            reason=row["reason"],
            row=row,
        )
        for row in csv.DictReader(io.StringIO(text))
    )


def _flows(text: str) -> tuple[Flow, ...]:
    """Parse a cell of the table, such as `One- or Two-way`."""
    words = {"one-": Flow.ONE_WAY, "two-": Flow.TWO_WAY}
    return tuple(flow for word, flow in words.items() if word in text.lower()) or (Flow.NONE,)


def _separations(text: str) -> tuple[Separation, ...]:
    """Parse a cell of the table, such as `Administration boundary, soft or hard`."""
    if not text.startswith("Administration"):
        return (Separation(text.lower()),)
    words = {"soft": Separation.DEPARTMENTS, "hard": Separation.COMPANIES}
    return tuple(separation for word, separation in words.items() if word in text)


def _shareable_information(system: PriorSystem) -> set[Information]:
    """Return the information that the system's separation allows, and that it shares today."""
    return {CAN_SHARE[separation][0] for separation in system.separations} | {system.information}


@dataclass(frozen=True, kw_only=True)
class Review:
    """The mechanisms that suit a prior system's constraints, compared with its mechanism today."""

    system: PriorSystem
    recommended: tuple[Mechanism, ...]
    same: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "system": self.system.name,
            "context": self.system.context,
            "information": str(self.system.information),
            "resources": [str(resource) for resource in self.system.resources],
            "separation": [str(separation) for separation in self.system.separations],
            "information_flow": [str(flow) for flow in self.system.flows],
            "control_planes": self.system.control_planes,
            "incorrect_assumptions": self.system.assumptions,
            "decision_making": self.system.decides,
            "problems_from_bad_decisions": self.system.problems,
            "command": self.system.command or None,
            "text_only": self.system.reason or None,
            "today": str(self.system.mechanism),
            "recommended": [str(mechanism) for mechanism in self.recommended],
            "same": self.same,
            "why": self.why,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class DesignSpace(Result):
    """The systems of Table 1.1 with the mechanisms that suit their constraints."""

    reviews: tuple[Review, ...]

    def __iter__(self) -> Iterator[Review]:
        return iter(self.reviews)

    def __len__(self) -> int:
        return len(self.reviews)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each system."""
        return pd.DataFrame(self.to_dict())

    def summary(self) -> list[str]:
        """Return the number of systems that already use the suitable mechanism."""
        same = sum(item.same for item in self.reviews)
        return [
            f"{same} of {len(self.reviews)} systems of the literature use the mechanism that suits them",
            "planner.recipes(resources=..., separation=...) recommends one for your constraints",
        ]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain data, as `--json` prints it."""
        return [item.to_dict() for item in self.reviews]


def review() -> DesignSpace:
    """Return every system of Table 1.1 with the mechanisms that suit its constraints."""
    return DesignSpace(reviews=tuple(_review_system(system) for system in table_1_1()))


AT_LINE_RATE: Final = {"cc_aqm"}
"""Routers mark or drop at line rate: the thesis' example of systems outside its recipes (5.2)."""


def _review_system(system: PriorSystem) -> Review:
    if system.id in AT_LINE_RATE:
        return Review(system=system, recommended=(), same=False, why=OUTSIDE)
    recommended: dict[Mechanism, None] = {}
    reasons = []
    for separation in system.separations:
        for resources in system.resources:
            advice = recommend(resources=resources, separation=separation)
            recommended |= dict.fromkeys(advice.mechanisms)
            reasons.append(advice.why[0])
    same = set(recommended) == {system.mechanism}
    why = "; ".join(dict.fromkeys(reasons))
    return Review(system=system, recommended=tuple(recommended), same=same, why=why)


def designs_of(mechanisms: Sequence[Mechanism]) -> list[tuple[str, str]]:
    """Return (system, design) for the designs of this toolkit with one of the mechanisms."""
    return [
        (name, design.name)
        for name in system_names()
        for design in find_system(name).designs
        if design.mechanism in mechanisms
    ]
