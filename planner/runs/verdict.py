"""Verdicts: what a run or a comparison says about the system's headline metric, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner.contract.proof import relative_gap
from planner.formatting import amount, amount_of, few, percent

if TYPE_CHECKING:
    from planner.runs.run import Comparison, Run

SAME: Final = 1e-6  # relative difference of values that a sentence calls equal
PROVEN: Final = 1e-4  # relative distance to the bound that a sentence calls proven
MOST_DESIGNS: Final = 3  # designs beside the best one that get a sentence of their own


def run_verdict(run: Run, bound: float | None = None) -> str:
    """Return the verdict on one run.

    bound  the tightest bound of the headline metric that is valid in truth, where another run proves one
    """
    value = _headline_value(run)
    if value is None:
        return f"{run.label}: {_missing(run)}."
    metric = run.system.headline
    bound = proven_bound(run) if bound is None else bound
    says = f"{run.label} {run.system.plan.headline.verb} {_shown(run, value)}"
    if bound is not None:
        extreme = "most" if metric.better == "more" else "least"
        if (relative_gap(value, bound) or 0.0) <= PROVEN:
            says += f", proven to be the {extreme} that is possible"
        else:
            says += f"; at {extreme} {amount(_rounded(bound), metric.unit)} is possible"
    return ". ".join([says, *(f"It {loss}" for loss in [*_losses(run), *_fallbacks(run)])]) + "."


def comparison_verdict(comparison: Comparison) -> str:
    """Return the verdict on a comparison: the best design, whether it is proven, and the others' distance."""
    metric = comparison.system.headline
    planned = [run for run in comparison.runs if _headline_value(run) is not None]
    if not planned:
        return " ".join(f"{run.label}: {_missing(run)}." for run in comparison.runs[:MOST_DESIGNS])
    best = min(planned, key=lambda run: (_rank(run), not run.constraints.met, run.proof.bound is None))
    bounds = [bound for run in comparison.runs if (bound := proven_bound(run)) is not None]
    tightest = (min if metric.better == "more" else max)(bounds) if bounds else None
    others = sorted((run for run in planned if run is not best), key=_rank)
    return " ".join([run_verdict(best, tightest), *_others(best, others)])


def proven_bound(run: Run) -> float | None:
    """Return the run's bound of the headline metric where it is valid for all plans of the true problem."""
    proof = run.proof
    is_valid = run.omniscient and proof.bound_scope is None and proof.metric == run.system.headline.name
    return proof.bound if is_valid else None


def _others(best: Run, others: Sequence[Run]) -> list[str]:
    value = _headline_value(best)
    assert value is not None
    same = [run for run in others if _is_same(_headline_value(run), value) and not _losses(run)]
    rest = [run for run in others if run not in same]
    lines = []
    if same:
        lines.append(f"The same: {few([run.label for run in same], MOST_DESIGNS + 1)}.")
    if len(rest) > MOST_DESIGNS:
        verb, worst = best.system.plan.headline.verb, rest[-1]
        lines.append(f"Last of {len(others) + 1}: {worst.label} {verb} {_with_losses(worst)}.")
        losing = [run for run in rest if _losses(run) and run is not worst]
        lines += [f"{run.label} {_losses(run)[0]}." for run in losing[-1:]]
    else:
        verb = best.system.plan.headline.verb
        lines += [f"{run.label} {verb} {_with_losses(run)}." for run in rest]
    return lines


def _with_losses(run: Run) -> str:
    value = _headline_value(run)
    assert value is not None
    return " and ".join([amount(_rounded(value), run.system.headline.unit), *_losses(run)])


def _losses(run: Run) -> list[str]:
    """Return what users lose by a plan: `loses 1.9 Gbit/s on 3 overloaded links`."""
    lost = run.constraints.lost
    lines = [
        f"{verb} {amount(_rounded(lost[name]), run.system.metric(name).unit)}"
        for name, verb in run.system.plan.headline.losses.items()
        if name in lost
    ]
    if run.constraints.violated:
        on = f" on {run.constraints.places}"
        lines = [lines[0] + on, *lines[1:]] if lines else ["violates constraints" + on]
    return lines


def _fallbacks(run: Run) -> list[str]:
    """Return what is served in a worse way than wished: `uses unicast for 3 groups`."""
    return [
        f"{verb} {amount(_rounded(value), run.system.metric(name).unit)}"
        for name, verb in run.system.plan.headline.fallbacks.items()
        if (value := run.metrics.get(name))
    ]


def _shown(run: Run, value: float) -> str:
    metric, total = run.system.headline, run.metrics.get(run.system.plan.headline.total)
    if total is None:
        return amount(_rounded(value), metric.unit)
    share = f" ({percent(value / total)})" if total > 0 and not _is_same(value, total) else ""
    return amount_of(_rounded(value), _rounded(total), metric.unit) + share


def _missing(run: Run) -> str:
    if run.error is not None:
        return f"no plan: {run.error}".rstrip(".")
    bound, metric = proven_bound(run), run.system.headline
    if run.entry.design.is_bound and bound is not None:
        extreme = "most" if metric.better == "more" else "least"
        return f"at {extreme} {amount(_rounded(bound), metric.unit)} is possible"
    if run.plan is None:
        says = run.status if run.status.startswith("no plan") else f"no plan ({run.status})"
        return says + "".join(f": {reason}".rstrip(".") for reason in run.proof.reasons[:1])
    return f"a plan without {metric.label[0].lower()}{metric.label[1:]}"


def _headline_value(run: Run) -> float | None:
    return None if run.plan is None else run.metrics.get(run.system.headline.name)


def _rank(run: Run) -> float:
    value = _headline_value(run)
    assert value is not None
    rounded = float(f"{value:.6g}")  # designs that differ by rounding are equal
    return -rounded if run.system.headline.better == "more" else rounded


def _is_same(one: float | None, other: float) -> bool:
    return one is not None and abs(one - other) <= SAME * max(abs(one), abs(other))


def _rounded(value: float) -> float:
    """Return a value with four significant digits; whole numbers below a million stay as they are."""
    return value if value == int(value) and abs(value) < 1e6 else float(f"{value:.4g}")
