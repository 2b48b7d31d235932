"""The designs of system `queries`."""

from __future__ import annotations

from typing import Final

from planner.contract.design import Design, Mechanism
from planner_models.queries import information
from planner_models.queries.designs import optimum, rules

FRENETIC: Final = "Foster et al. 2013 (Frenetic)"
INSTALLED: Final = "rules that are installed ahead"

DESIGNS: Final = (
    Design(
        name="optimum",
        title="Optimal mix",
        decide=optimum.answer_best,
        mechanism=Mechanism.TRANSPARENCY,
        source="Hooker, Ottosson 2003 (logic-based Benders decomposition)",
        messages=f"headers, sizes and times of all flows; {INSTALLED}",
        signalling=information.report_traffic,
    ),
    Design(
        name="specialization",
        title="Reactive specialization",
        decide=rules.answer_specialized,
        mechanism=Mechanism.REACTION,
        source=f"{FRENETIC}, III.B (NetCore)",
        messages=INSTALLED,
        signalling=information.install,
    ),
    Design(
        name="unfolding",
        title="Dynamic unfolding",
        decide=rules.answer_by_unfolding,
        mechanism=Mechanism.REACTION,
        source=f"{FRENETIC}, II.A",
        messages=INSTALLED,
        signalling=information.install,
    ),
    Design(
        name="microflows",
        title="Microflow unfolding",
        decide=rules.answer_by_microflows,
        mechanism=Mechanism.REACTION,
        source=f"{FRENETIC}, III.B (its first run-time system)",
        messages=INSTALLED,
        signalling=information.install,
    ),
    Design(
        name="proactive",
        title="Proactive installation",
        decide=rules.answer_ahead,
        mechanism=Mechanism.REACTION,
        source=f"{FRENETIC}, III.B (NetCore)",
        messages=INSTALLED,
        signalling=information.install,
    ),
    Design(
        name="controller",
        title="Central counting",
        decide=rules.answer_by_controller,
        mechanism=Mechanism.REACTION,
        source=f"{FRENETIC}, II.A",
        messages=INSTALLED,
        signalling=information.install,
    ),
)
