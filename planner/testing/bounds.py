"""Comparison of plans with bounds, and of heuristics with proven optima."""

from __future__ import annotations

from collections.abc import Sequence

from planner.contract.metrics import Metric
from planner.contract.ranking import compare_ranks
from planner.runs.run import Run
from planner.runs.verdict import headline_values, proven_bounds, tightest_bounds
from planner.testing.cases import TOLERANCE


def check_bounds(runs: Sequence[Run]) -> None:
    """Check that no plan is better than a bound that covers it.

    A bound without a scope covers all plans; one with a scope covers those of designs of the same scope. A
    bound where all must be served covers plans that serve all, and one of another metric than the headline's,
    such as the cost, those that reach as much of the headline metric.
    """
    for service in ("best", "all"):
        bounding = [run for run in runs if run.options.service == service]
        covered = [run for run in runs if service == "best" or not run.constraints.lost]
        _check_headline(bounding, covered)
        _check_metrics(bounding, [run for run in covered if run.plan is not None and not len(run.violations)])


def _check_headline(bounding: Sequence[Run], covered: Sequence[Run]) -> None:
    """Check the ranks of the headline, in which plans with violations are comparable too."""
    tightest = tightest_bounds(bounding)
    for run in covered:
        ranks, values = run.system.ranks, headline_values(run)
        if compare_ranks(ranks, values, tightest, TOLERANCE) > 0:
            first = next(run_ for run_ in bounding if proven_bounds(run_) == tightest)
            raise AssertionError(
                f"{describe(run)}: {_show(ranks, values)} beats the bound {_show(ranks, tightest)} "
                f"of {describe(first)}"
            )


def _check_metrics(bounding: Sequence[Run], covered: Sequence[Run]) -> None:
    """Check the metric that each bound is of, in plans without violations."""
    for bound_run in bounding:
        proof = bound_run.proof
        if not bound_run.omniscient or proof.bound is None or proof.metric is None:
            continue
        metric = bound_run.system.metric(proof.metric)
        for run in covered:
            value = run.metrics.get(metric.name)
            if value is None or not _is_covered(run, bound_run, metric):
                continue
            assert not is_better(metric, value, proof.bound), (
                f"{describe(run)}: {metric.name} {value} beats the bound {proof.bound} of "
                f"{describe(bound_run)}" + (f" for {proof.bound_scope}" if proof.bound_scope else "")
            )


def _is_covered(run: Run, bound_run: Run, metric: Metric) -> bool:
    """Return whether a bound on a metric covers the plan of a run."""
    proof = bound_run.proof
    same_scope = run.proof.bound_scope == proof.bound_scope and run.proof.metric == proof.metric
    is_in_scope = not proof.bound_scope or (same_scope and run.omniscient)
    return is_in_scope and _serves_as_much(run, bound_run, metric)


def check_optimum(runs: Sequence[Run]) -> None:
    """Check that no plan is better than one that is proven optimal among all plans."""
    for best in runs:
        if str(best.proof.status) == "optimal" and best.omniscient and best.options.service == "best":
            _check_one_optimum(best, runs)


def _check_one_optimum(best: Run, runs: Sequence[Run]) -> None:
    proof = best.proof
    if best.plan is None or proof.metric is None or proof.bound_scope or proof.bound is None:
        return
    # what users get, also of plans with violations; a rank without a bound is not claimed to be the best
    ranks = best.system.ranks[: len(proven_bounds(best))]
    for run in runs:
        if ranks:
            _check_ranks(best, run, ranks)
        elif run.plan is not None and not len(run.violations):
            _check_value(best, run, best.system.metric(proof.metric))


def _check_ranks(best: Run, run: Run, ranks: Sequence[Metric]) -> None:
    """Check that a run is no better than the best one in the ranks for which that is proven."""
    values, best_values = headline_values(run), headline_values(best)
    assert compare_ranks(ranks, values, best_values, TOLERANCE + (best.proof.gap or 0.0)) <= 0, (
        f"{describe(run)}: {_show(ranks, values)} beats the optimum "
        f"{', '.join(map(str, best_values[: len(ranks)]))} of {describe(best)}"
    )


def _check_value(best: Run, run: Run, metric: Metric) -> None:
    """Check that a run that serves as much as the best one is no better in the metric that is proven."""
    value, optimum = run.metrics.get(metric.name), best.metrics[metric.name]
    assert optimum is not None
    if value is None or not _serves_as_much(run, best, metric):
        return
    assert not is_better(metric, value, optimum, slack=best.proof.gap or 0.0), (
        f"{describe(run)}: {metric.name} {value} beats the optimum {optimum} of {describe(best)}"
    )


def _serves_as_much(run: Run, other: Run, metric: Metric) -> bool:
    """Return whether a plan reaches the headline metric of another, where `metric` is not the headline's."""
    headline = run.system.headline
    value, reached = (run_.metrics.get(headline.name) for run_ in (run, other))
    if metric.name == headline.name or value is None or reached is None:
        return True
    return not is_better(headline, reached, value)


def describe(run: Run) -> str:
    """Return a run's design with its parameters and options, as in `optimum(paths=4, service=all)`."""
    settings = dict(run.entry.parameters)
    settings |= {
        name: value for name, value in run.options.to_dict().items() if name in ("gap", "time_limit_s")
    }
    settings |= {"service": "all"} if run.options.service == "all" else {}
    return run.label + (
        f"({', '.join(f'{name}={value}' for name, value in settings.items())})" if settings else ""
    )


def is_better(metric: Metric, value: float, than: float, slack: float = 0.0) -> bool:
    """Return whether a value of a metric is better than another by more than a tolerance."""
    margin = (TOLERANCE + slack) * max(abs(value), abs(than), 1e-3)
    return value > than + margin if metric.better == "more" else value < than - margin


def _show(metrics: Sequence[Metric], values: Sequence[float]) -> str:
    return ", ".join(f"{metric.name} {value}" for metric, value in zip(metrics, values, strict=False))
