"""Sentences of reports on a run: the end of its search, its constraints, its proof and its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from planner.contract.proof import OPTIMAL_GAP
from planner.formatting import amount_or_number, heading, percent
from planner.reports.document import Kind, Text
from planner.scenarios.commands import value_text

if TYPE_CHECKING:
    from planner.contract.metrics import Metric
    from planner.contract.proof import Proof
    from planner.runs.rolling import Window
    from planner.runs.run import Run
    from planner.scenarios.scenario import Scenario


def trouble(run: Run) -> list[Text]:
    """Return the reason for which a run has no plan, or the constraints that its plan violates in truth."""
    if run.error is not None:
        return [Text(f"{run.label}: {run.reason}", "bad")]
    if run.plan is None:
        why = "; ".join(run.proof.reasons) or _missing_plan_reason(run.proof)
        if not run.exit_code:  # a design for bounds has done its work
            return []
        return [Text(f"{run.label}: {run.status}: {why}", "bad")]
    says = [*run.violations.sentences(), *run.proof.reasons]
    return [Text(f"{run.label}: {sentence}", "warning") for sentence in says]


def _missing_plan_reason(proof: Proof) -> str:
    if str(proof.status) != "undecided":
        return "no reason known"
    if proof.bound is not None:
        return "no plan, only a bound"
    return "neither a plan nor a bound within the limits given"


def why_no_plan(window: Window) -> Any:
    """Return the reason why a window has no plan."""
    return window.run.get("error") or "; ".join(window.run.get("reasons", [])) or "no plan"


def proven_values(run: Run) -> list[tuple[Metric, float | None, float | None]]:
    """Return metric, objective value and bound of each rank that the run's proof speaks of."""
    proof = run.proof
    if proof.ranks:
        return [(run.system.metric(rank.metric), rank.objective, rank.bound) for rank in proof.ranks]
    return [(run.system.metric(proof.metric), proof.objective, proof.bound)] if proof.metric else []


def search_status(run: Run) -> Text:
    """Return the end of the search of a run, separate from whether its plan meets the constraints."""
    if run.error is not None:
        return Text(type(run.error).__name__, "bad")
    kind: Kind = "good" if run.status == "optimal" else "" if run.plan is not None else "bad"
    return Text(run.status, "dim" if run.status in ("heuristic", "bound only") else kind)


def constraints(run: Run) -> Text:
    """Return whether a run's plan meets all constraints in truth."""
    if run.plan is None:
        return Text("-")
    if run.constraints.met:
        return Text("met", "good")
    return Text("violated", "bad")


def constraints_in_words(run: Run) -> Text:
    """Return a statement that a plan meets all constraints in truth, or violates some."""
    is_met = run.constraints.met
    return Text("meets all constraints", "good") if is_met else Text("violates constraints", "bad")


SERVICE: Final = {
    "best": "capacity may be short: a plan leaves out what cannot be served, at least loss",
    "all": "all demand must be served",
}
"""The demands that a plan may leave out, by the solver's option `service`."""


def changes_of(scenario: Scenario) -> list[str]:
    """Return the changes of a scenario as text, such as `fail links: Koblenz<->Koeln`."""
    changes = []
    for key, value in scenario.changes.items():
        section, *owner, name = key.split(".")
        words = f"{owner[0]}, {heading(name)}" if section == "designs" and owner else heading(name)
        is_list = isinstance(value, list | tuple)
        changes.append(f"{words}: {', '.join(map(str, value)) if is_list else value_text(value)}")
    return changes


def changes_in_words(scenario: Scenario | None) -> str:
    """Return a sentence on the changes of a scenario; nothing without changes."""
    changes = [] if scenario is None else changes_of(scenario)
    return f" Changed: {'; '.join(changes)}." if changes else ""


def what_is_proven(run: Run) -> str:
    """Return the proven and the unproven claims about a plan, in one sentence."""
    proof, scope = run.proof, run.proof.bound_scope
    if run.error is not None:
        return f"no plan: {run.reason}"
    if not proven_values(run) or proof.bound is None:
        return f"nothing ({run.status}): a better plan may exist"
    metric, objective, _ = proven_values(run)[0]
    scoped = f" for {scope}" if scope else ""
    if objective is not None and (proof.gap or 0.0) <= OPTIMAL_GAP:
        shown = amount_or_number(objective, metric.unit)
        extreme = "most" if metric.better == "more" else "least"
        says = f"optimal: {metric.label} of {shown} is the {extreme} that is possible{scoped}"
        says += "; nothing is proven of other plans" if scope else ""
    else:
        says = f"{_say_bound(metric, proof.bound)}{scoped}"
        if objective is not None:
            says += f"; the plan is within {percent(proof.gap)} of it"
    return says if run.omniscient else f"{says}, by the information that it has"


def _say_bound(metric: Metric, bound: float) -> str:
    """Return the limit of a metric that a bound proves, as the beginning of a sentence."""
    limit = "at most" if metric.better == "more" else "no less than"
    return f"{metric.label} of {limit} {amount_or_number(bound, metric.unit)} is possible"
