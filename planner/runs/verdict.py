"""Verdicts: results of a run or a comparison in the system's headline metric, in plain sentences."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from planner.contract.metrics import Headline, Metric
from planner.contract.proof import OPTIMAL_GAP, Status, relative_gap
from planner.contract.ranking import EQUAL, compare_ranks
from planner.formatting import amount_of, few, is_convertible, percent, phrase, plural, sizes

if TYPE_CHECKING:
    from planner.contract.metrics import Metric
    from planner.contract.simulation import Simulation
    from planner.contract.system import System
    from planner.errors import PlannerError
    from planner.runs.outcome import Outcome

SAME: Final = 1e-6  # relative difference of values that a sentence calls equal
SMALL: Final = 1e-9  # amount of a loss that a sentence leaves out
LEAST_PART: Final = 1e-6  # of a loss; groups with less lose nothing
MOST_DESIGNS: Final = 3  # designs beside the best one that get a sentence of their own
MOST_NAMES: Final = 6  # designs that a sentence lists
UNFAILED: Final = "Without failures, "
"""Beginning of a verdict that also says what plans keep in failures."""
BESIDES: Final = "Apart from that, "
"""Beginning of a verdict after the sentence on what every plan loses."""
OutcomeT = TypeVar("OutcomeT", bound="Outcome")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a verdict.

    is_loss       whether it says what users lose by the best plan
    is_paragraph  whether it is a paragraph of its own where there is space
    """

    text: str
    is_loss: bool = False
    is_paragraph: bool = False


def run_verdict(run: Outcome) -> str:
    """Return the verdict on one run."""
    return _joined([*_run_sentences(run, proven_bounds(run)), *_in_failures([run])])


def comparison_verdict(runs: Sequence[Outcome]) -> str:
    """Return the verdict on a comparison: the best design, whether it is proven, and the others' distance."""
    return _joined(comparison_sentences(runs))


def comparison_sentences(runs: Sequence[Outcome]) -> list[Sentence]:
    """Return the sentences of the verdict on a comparison: the best design first, then its losses.

    Where plans are made for failures, the last sentences say what each of them keeps then.
    """
    best = best_run(runs)
    if best is None:
        return [Sentence(f"{run.label}: {_missing(run)}.") for run in runs[:MOST_DESIGNS]]
    others = sorted((run for run in runs if run is not best and headline_values(run)), key=_rank)
    return [
        *_run_sentences(best, tightest_bounds(runs)),
        *(Sentence(text) for text in [*_others(best, others), *_ignored_limits(others)]),
        *(Sentence(f"{run.label}: {_missing(run)}.") for run in runs if _is_silent(run)),
        *_in_failures([best, *others]),
    ]


def _is_silent(run: Outcome) -> bool:
    """Return whether a run that was to make a plan has none, or one without the headline metric."""
    return not headline_values(run) and not run.entry.design.is_bound


def best_run(runs: Sequence[OutcomeT]) -> OutcomeT | None:
    """Return the run with the best plan by the headline's ranks; None where no run has a plan."""
    planned = [run for run in runs if headline_values(run)]
    key = lambda run: (_breaks_required(run), _rank(run), not run.constraints.met, run.proof.bound is None)  # noqa: E731
    return min(planned, key=key, default=None)


def _run_sentences(run: Outcome, bounds: Sequence[float]) -> list[Sentence]:
    """Return the headline metric of a run, and its losses.

    bounds  the tightest bounds of the headline's ranks that are valid in truth
    """
    values = headline_values(run)
    if not values:
        return [Sentence(f"{run.label}: {_missing(run)}.")]
    lost = _lost_in_any_plan(run)
    lead = BESIDES if lost else UNFAILED if _has_failure_figures(run) else ""
    return [
        *(Sentence(text, is_loss=True) for text in lost),
        *(Sentence(f"{run.label} {loss}.", is_loss=True) for loss in _worst_losses(run)),
        *(Sentence(f"{run.label} {guaranteed}.") for guaranteed in _guarantees(run)),
        Sentence(f"{lead}{run.label} {_headline(run, values, bounds)}."),
        *(Sentence(f"{text}.") for text in _details(run)),
        *(Sentence(f"It {loss}.", is_loss=True) for loss in _losses(run, bounds)),
        *(Sentence(f"It {fallback}.") for fallback in _fallbacks(run)),
        *(Sentence(f"{reason[0].upper()}{reason[1:]}.", is_loss=True) for reason in run.proof.reasons),
        *(Sentence(f"It does not consider {limits}.") for limits in [_ignored_by(run)] if limits),
    ]


def _details(run: Outcome) -> Sequence[str]:
    """Return the decisions of a plan in sentences without a stop, where its system states them."""
    details = run.system.plan.headline.details
    return (
        () if details is None or run.plan is None or run.problem is None else details(run.problem, run.plan)
    )


def _lost_in_any_plan(run: Outcome) -> list[str]:
    """Return a sentence on the demand that no plan can serve, and one on the loss that none can avoid."""
    headline = run.system.plan.headline
    sentences = [
        headline.unservable(run.problem) if headline.unservable and run.problem is not None else "",
        headline.unavoidable(run.metrics) if headline.unavoidable else "",
    ]
    return [sentence for sentence in sentences if sentence]


def _joined(sentences: Sequence[Sentence]) -> str:
    return " ".join(sentence.text for sentence in sentences)


def windows_verdict(system: System, windows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the verdict on a series: the mean and the worst of the headline, and the mean losses.

    windows  figures of the windows with a plan, by design: metrics, and the number of `violations`
    """
    return " ".join(windows_sentences(system, windows))


def windows_sentences(system: System, windows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the sentences of the verdict on a series, one for each design, the best one first."""
    metric = system.headline
    lines: list[tuple[float, str]] = []
    for design, rows in windows.items():
        values = [row[metric.name] for row in rows if row.get(metric.name) is not None]
        if values:
            mean = sum(values) / len(values)
            sentence = _windows_sentence(system, design, rows, values)
            lines.append((-mean if metric.better == "more" else mean, sentence))
    return [says for _, says in sorted(lines, key=lambda line: line[0])]


def _windows_sentence(
    system: System, design: str, rows: Sequence[Mapping[str, Any]], values: Sequence[float]
) -> str:
    """Return the mean and the worst value of a design, and its mean losses.

    rows    metrics of each window
    values  of the headline metric, in the windows that have one
    """
    headline, metric = system.plan.headline, system.headline
    worst = min(values) if metric.better == "more" else max(values)
    count = sizes({"windows": len(values)})
    says = f"{design} {phrase(headline.verb, metric.text(sum(values) / len(values)))} in the mean of {count}"
    parts = [f"{says} ({metric.text(worst)} in the worst)"]
    for name, verb in headline.losses.items():
        amounts = [row.get(name) or 0.0 for row in rows]
        lost = sum(amounts) / len(rows)
        if lost > SMALL:
            says = f"{phrase(verb, system.metric(name).text(lost))} in the mean"
            without = sum(amount <= LEAST_PART * max(amounts) for amount in amounts)
            parts.append(f"{says} (nothing in {without} of {count})" if without else says)
    violating = sum(bool(row["violations"]) for row in rows)
    if violating:
        parts.append(f"violates constraints in {sizes({'windows': violating})}")
    return " and ".join(parts) + "."


def _describe_simulation(
    simulation: Simulation, headline: Headline, figures: Mapping[str, float | None]
) -> str:
    """Return the headline metric of a simulation, the one that follows it, and the losses, as a text."""
    says = phrase(headline.verb, simulation.metric(headline.metric).text(figures[headline.metric]))
    then = figures.get(headline.then) if headline.then else None
    if then is not None:
        says += f", {headline.then_words} {simulation.metric(headline.then).text(then)}"
    worse = {**headline.losses, **headline.fallbacks}
    lost = [
        phrase(verb, simulation.metric(name).text(figures[name] or 0.0))
        for name, verb in worse.items()
        if (figures.get(name) or 0.0) > SMALL
    ]
    return " and ".join([says, *lost])


def simulation_sentences(
    system: System,
    metrics_of: Mapping[str, Mapping[str, float | None]],
    errors: Mapping[str, PlannerError],
) -> list[str]:
    """Return the verdict on a simulation: the headline and the losses of each design, the best one first.

    metrics_of    metrics of the simulations that ended, by design
    errors  the others' errors, by design
    """
    simulation = system.studies.simulation
    if simulation is None or not simulation.metrics:
        return []
    first = simulation.metrics[0]
    headline = simulation.headline or Headline(metric=first.name, verb=f"has {{}} as {first.words}")
    metric = simulation.metric(headline.metric)
    lines: list[tuple[float, str]] = []
    for label, figures in metrics_of.items():
        value = figures.get(metric.name)
        if value is None:
            continue
        sentence = f"{label} {_describe_simulation(simulation, headline, figures)}."
        lines.append((-value if metric.better == "more" else value, sentence))
    failed = [f"{label}: {error}".rstrip(".") + "." for label, error in errors.items()]
    return [*(says for _, says in sorted(lines, key=lambda line: line[0])), *failed]


def headline_values(run: Outcome) -> tuple[float, ...]:
    """Return the run's values of the headline's ranks, up to the first that is unknown; () without a plan."""
    values: list[float] = []
    for metric in run.system.ranks:
        value = None if run.plan is None else run.metrics.get(metric.name)
        if value is None:
            break
        values.append(value)
    return tuple(values)


def headline_words(system: System, metrics: Mapping[str, float | None]) -> str:
    """Return the headline metric of a plan: `delivers 38.9 of 40.8 Gbit/s (95.3%)`."""
    headline = system.plan.headline
    says = _of_total(system, metrics, system.headline, headline.verb)
    return f"{headline.words(metrics)}; it {says}" if headline.words else says


def _guarantees(run: Outcome) -> list[str]:
    """Return the guarantees of a plan: `guarantees 30 of 40.8 Gbit/s (73.5%) in every failure`."""
    verbs = run.system.plan.headline.guarantees
    return [
        _of_total(run.system, run.metrics, run.system.metric(name), verb)
        for name, verb in verbs.items()
        if run.metrics.get(name) is not None
    ]


def _of_total(system: System, metrics: Mapping[str, float | None], metric: Metric, verb: str) -> str:
    """Return a verb with the value of a metric, and its share of the request."""
    value, total = metrics.get(metric.name), metrics.get(system.plan.headline.total)
    if value is None:
        return f"has no {metric.words}"
    if total is None:
        return phrase(verb, metric.text(value))
    says = amount_of(_rounded(value), _rounded(total), metric.unit)
    if total > 0 and not _is_same(value, total):
        share = percent(value / total)
        says += f" ({'more than 99.9%' if value < total and share == '100.0%' else share})"
    return phrase(verb, says)


def loss_words(system: System, metrics: Mapping[str, float | None]) -> list[str]:
    """Return the users' losses, a phrase for each metric of losses: `sheds 1.9 Gbit/s`."""
    verbs = system.plan.headline.losses
    lost = system.losses(metrics)
    return [_loss(system, name, lost[name]) for name in verbs if name in lost]


def _loss(system: System, name: str, lost: float) -> str:
    return phrase(system.plan.headline.losses[name], system.metric(name).text(lost))


def proven_bounds(run: Outcome) -> tuple[float, ...]:
    """Return the run's bounds of the headline's ranks where they are valid for all plans in truth, else ().

    The second one is valid for the plans that reach the first one.
    """
    proof, names = run.proof, [metric.name for metric in run.system.ranks]
    if not run.omniscient or proof.bound_scope is not None:
        return ()
    if [rank.metric for rank in proof.ranks] == names:
        return tuple(rank.bound for rank in proof.ranks)
    return (proof.bound,) if proof.metric == names[0] and proof.bound is not None else ()


def tightest_bounds(runs: Sequence[Outcome]) -> tuple[float, ...]:
    """Return the tightest of all runs' bounds of the headline's ranks; () where there is none."""
    tightest: tuple[float, ...] = ()
    for run in runs:
        bounds = proven_bounds(run)
        order = compare_ranks(run.system.ranks, bounds, tightest, 0.0)
        if not tightest or order < 0 or (order == 0 and len(bounds) > len(tightest)):
            tightest = bounds or tightest
    return tightest


def _headline(run: Outcome, values: Sequence[float], bounds: Sequence[float]) -> str:
    """Return the value of a plan in each rank, and its proof."""
    first, *others = run.system.ranks
    says = headline_words(run.system, run.metrics)
    total = run.metrics.get(run.system.plan.headline.total)
    is_all = first.better == "more" and total is not None and _is_same(values[0], total)
    is_reached = bool(bounds) and _reaches(values[0], bounds[0], OPTIMAL_GAP)
    is_ranked = bool(others) and len(values) > 1
    if is_reached and not (is_all and is_ranked):
        says += f", proven to be the {_extreme(first)} that is possible"
    if is_ranked:
        says += _second_rank(run, values, bounds, after="" if is_all else " then")
    if not bounds:
        return says + _limited_proof(run, first)
    return says if is_reached else says + _distance(first, total, values[0], bounds[0])


def _second_rank(run: Outcome, values: Sequence[float], bounds: Sequence[float], *, after: str) -> str:
    """Return the value of a plan in the second rank, with its bound where the first rank reaches its own.

    after  words behind what is proven
    """
    _, then = run.system.ranks
    says = f", {run.system.plan.headline.then_words} {then.text(values[1])}{_period(run)}{_terms(run)}"
    # the bound of the second rank holds for plans that reach that of the first
    if len(bounds) < 2 or not _reaches(values[0], bounds[0], EQUAL):
        return says
    if _reaches(values[1], bounds[1], OPTIMAL_GAP):
        return f"{says}, proven to be the {_extreme(then)} that is possible{after}"
    return f"{says}; {_possible(bounds[1], then)}{after}"


def _distance(metric: Metric, total: float | None, value: float, bound: float) -> str:
    """Return the best possible value, and the reached share of it unless that is all."""
    says = f"; {_possible(bound, metric)}"
    if total is not None and metric.better == "more" and 0 < bound < total * (1 - SAME):
        says += f", of which this is {percent(value / bound)}"
    return says


def _limited_proof(run: Outcome, first: Metric) -> str:
    """Return the proof of a run without a bound on all plans: for its observation, or for some plans."""
    proof = run.proof
    if not run.omniscient:
        return ", optimal by the information that it has" if proof.status is Status.OPTIMAL else ""
    if not proof.bound_scope or proof.bound is None or proof.metric != first.name:
        return ""
    # levels and ranks may be proven where their sum is not: only objective and bound say what is possible
    if proof.objective is not None and _reaches(proof.objective, proof.bound, OPTIMAL_GAP):
        return f", proven to be the {_extreme(first)} that is possible for {proof.bound_scope}"
    return f"; {_possible(proof.bound, first)} for {proof.bound_scope}"


def _others(best: Outcome, others: Sequence[Outcome]) -> list[str]:
    """Return the sentences on all designs but the best: the same, the next and the last."""
    same = [run for run in others if _is_as_good(run, best)]
    remaining = [run for run in others if run not in same]
    lines = []
    if same:
        lines.append(f"The same: {few([run.label for run in same], MOST_DESIGNS + 1)}.")
    if len(remaining) <= MOST_DESIGNS:
        return [*lines, *(f"{_with_losses(run)}." for run in remaining)]
    where = " without failures" if _has_failure_figures(best) else ""
    next_words = f"Next of {len(others) + 1}{where}: {_with_losses(remaining[0])}."
    last_words = f"Last{where}: {_with_losses(remaining[-1])}."
    return [*lines, next_words, last_words, *_violating(remaining[1:-1])]


def _violating(runs: Sequence[Outcome]) -> list[str]:
    """Return the sentence on the designs that violate constraints, if any does."""
    labels = [run.label for run in runs if run.constraints.violated]
    return [f"Constraints are also violated by {few(labels, MOST_DESIGNS + 1)}."] if labels else []


def _is_as_good(run: Outcome, best: Outcome) -> bool:
    """Return whether a run has the values of the best one, no other losses, and the same violations."""
    if _differ(run, best) or _all_losses(run) not in ([], _all_losses(best)):
        return False
    return _breaks_required(run) == _breaks_required(best)


def _has_failure_figures(run: Outcome) -> bool:
    """Return whether the metrics of the run's plan in failures are known."""
    return any(run.metrics.get(name) is not None for name in run.system.plan.headline.in_failures)


def _in_failures(runs: Sequence[Outcome]) -> list[Sentence]:
    """Return a sentence for each metric of plans in failures: all designs, the best first.

    Designs with the same figure are named together; the figure of a single design needs no name. What a
    single design guarantees is in its first sentence already.
    """
    system = runs[0].system
    sentences = []
    for name, words in system.plan.headline.in_failures.items():
        if len(runs) == 1 and name in system.plan.headline.guarantees:
            continue
        metric = system.metric(name)
        rated = [(value, run.label) for run in runs if (value := run.metrics.get(name)) is not None]
        labels: dict[str, list[str]] = {}
        for value, label in sorted(rated, key=lambda pair: pair[0], reverse=metric.better == "more"):
            labels.setdefault(metric.text(value), []).append(label)
        parts = [
            shown if len(runs) == 1 else f"{few(names, MOST_NAMES)} {shown}"
            for shown, names in labels.items()
        ]
        if parts:
            sentences.append(Sentence(f"{words}: {'; '.join(_ends(parts))}.", is_paragraph=True))
    return sentences


def _ends(parts: Sequence[str]) -> list[str]:
    """Return parts of a sentence; of more than MOST_NAMES, the first ones and the last."""
    if len(parts) <= MOST_NAMES:
        return list(parts)
    return [*parts[: MOST_NAMES - 2], "...", parts[-1]]


def _ignored_limits(runs: Sequence[Outcome]) -> list[str]:
    """Return a sentence for the designs that do not consider the same limits of the problem."""
    labels: dict[str, list[str]] = {}
    for run in runs:
        labels.setdefault(_ignored_by(run), []).append(run.label)
    return [
        f"{few(names, MOST_NAMES)} {'does' if len(names) == 1 else 'do'} not consider {limits}."
        for limits, names in labels.items()
        if limits
    ]


def _ignored_by(run: Outcome) -> str:
    return run.entry.design.ignores(run.problem, run.entry.parameters)


def _with_losses(run: Outcome) -> str:
    """Return the value and losses of a design: `ecmp delivers 229 Gbit/s and loses 1.2 Gbit/s on 3 links`."""
    headline, metrics, values = run.system.plan.headline, run.system.ranks, headline_values(run)
    says = (
        headline.words(run.metrics) if headline.words else phrase(headline.verb, metrics[0].text(values[0]))
    )
    if len(values) > 1:
        says += f" {headline.then_words} {metrics[1].text(values[1])}{_period(run)}"
    return f"{run.label} " + " and ".join([*_worst_losses(run), says, *_losses(run)])


def _period(run: Outcome) -> str:
    """Return the time that the second rank is for, such as ` for 168 windows`; "" where it has none."""
    period = run.system.plan.headline.then_period
    says = period(run.problem) if period is not None and run.problem is not None else ""
    return f" {says}" if says else ""


def _terms(run: Outcome) -> str:
    """Return the terms of the second rank, such as ` (score + EUR per hour)`; "" where it is one figure."""
    terms = run.system.plan.headline.then_terms
    says = terms(run.problem) if terms is not None and run.problem is not None else ""
    return f" ({says})" if says else ""


def _worst_losses(run: Outcome) -> list[str]:
    """Return the losses that the headline metric would hide, in words: `gives nothing to 2 tenants`."""
    lost = run.system.losses(run.metrics)
    return [_loss(run.system, name, lost[name]) for name in run.system.plan.headline.worst if name in lost]


def _losses(run: Outcome, bounds: Sequence[float] = ()) -> list[str]:
    """Return the users' losses by a plan beside `Headline.worst`: `loses 1.9 Gbit/s on 3 overloaded links`.

    bounds  of the headline's ranks that are valid in truth: they may say how much of it every plan loses
    """
    lost, headline = run.system.losses(run.metrics), run.system.plan.headline
    more = _losses_beyond_unservable(run, lost)
    names = [name for name in headline.losses if name in more and name not in headline.worst]
    lines = [_loss(run.system, name, more[name]) for name in names]
    required = headline.required
    counts: list[dict[str, int]] = [{}, {}]
    for violation in run.constraints.violated:
        counts[violation.limit in required][violation.words] = violation.places
    overloaded, broken = map(sizes, counts)
    if overloaded:
        on = f" on {overloaded}"
        lines = [lines[0] + on, *lines[1:]] if lines else ["violates constraints" + on]
    groups = [_losing_groups(run, name, lost[name]) for name in names]
    lines = [line + of for line, of in itertools.zip_longest(lines, groups, fillvalue="")]
    if len(names) == 1:
        lines[0] += _lost_by_all(run, names[0], lost[names[0]], bounds)
    return [*([f"has {broken}"] if broken else []), *lines]


def _losses_beyond_unservable(run: Outcome, lost: Mapping[str, float]) -> dict[str, float]:
    """Return the losses without those of demands that no plan can serve, which a verdict says first."""
    amounts = run.system.plan.headline.unservable_losses
    said = amounts(run.problem) if amounts is not None and run.problem is not None else {}
    more = {name: value - said.get(name, 0.0) for name, value in lost.items()}
    return {name: value for name, value in more.items() if value > SAME * said.get(name, 0.0)}


def _all_losses(run: Outcome) -> list[str]:
    return [*_worst_losses(run), *_losses(run)]


def _lost_by_all(run: Outcome, name: str, lost: float, bounds: Sequence[float]) -> str:
    """Return the loss that every plan has, if it is the difference of the headline metric from its total."""
    first, total = run.system.headline, run.metrics.get(run.system.plan.headline.total)
    value = run.metrics.get(first.name)
    if not bounds or total is None or value is None or run.system.metric(name).unit != first.unit:
        return ""
    unavoidable = total - bounds[0]
    is_lack = first.better == "more" and _is_same(value + lost, total)
    if not is_lack or unavoidable <= SAME * total or _reaches(value, bounds[0], OPTIMAL_GAP):
        return ""
    return f", at least {first.text(unavoidable)} of it in every plan"


def _losing_groups(run: Outcome, metric: str, lost: float) -> str:
    """Return the losing groups: `, all of class bulk`; nothing without groups, or if all lose."""
    parts = run.breakdown
    if parts is None or metric not in parts.frame or len(parts.frame) < 2:
        return ""
    losing = parts.groups_with(metric, LEAST_PART * lost)
    if not losing or len(losing) == len(parts.frame):
        return ""
    noun = parts.group if len(losing) == 1 else plural(parts.group)
    return f", all of {noun} {few(losing)}"


def _fallbacks(run: Outcome) -> list[str]:
    """Return the amounts served in a worse way than requested: `uses unicast for 3 groups`."""
    return [
        phrase(verb, run.system.metric(name).text(value))
        for name, verb in run.system.plan.headline.fallbacks.items()
        if (value := run.metrics.get(name))
    ]


def _extreme(metric: Metric) -> str:
    return "most" if metric.better == "more" else "least"


def _possible(bound: float, metric: Metric) -> str:
    """Return a bound in words: `at most 38.9 Gbit/s is possible`, `no less than 1.2 ms is possible`."""
    verb = "is" if is_convertible(metric.unit) or not metric.unit else "are"
    limit = "at most" if metric.better == "more" else "no less than"
    return f"{limit} {metric.text(bound)} {verb} possible"


def _missing(run: Outcome) -> str:
    if run.error is not None:
        return f"no plan: {run.reason}".rstrip(".")
    bounds, metric = proven_bounds(run), run.system.headline
    if run.entry.design.is_bound and bounds:
        return _possible(bounds[0], metric)
    bound = run.proof.bound if run.omniscient and run.proof.metric == metric.name else None
    if run.entry.design.is_bound and bound is not None:
        return _possible(bound, metric) + (f" for {run.proof.bound_scope}" if run.proof.bound_scope else "")
    if run.plan is None:
        says = run.status if run.status.startswith("no plan") else f"no plan ({run.status})"
        return says + "".join(f": {reason}".rstrip(".") for reason in run.proof.reasons[:1])
    return "; ".join([f"a plan without {metric.words}", *loss_words(run.system, run.metrics)])


def _breaks_required(run: Outcome) -> bool:
    """Return whether a plan violates a constraint that none may violate at any gain."""
    return any(violation.limit in run.system.plan.headline.required for violation in run.constraints.violated)


def _rank(run: Outcome) -> tuple[float, ...]:
    """Return a key that sorts plans, the best one first; designs that differ by rounding are equal.

    What the headline metric would hide comes first: the mean of few coflows is no better than that of all.
    """
    metrics, values, lost = run.system.ranks, headline_values(run), run.system.losses(run.metrics)
    hidden = (float(f"{lost.get(name, 0.0):.6g}") for name in run.system.plan.headline.worst)
    return *hidden, *(
        (-1 if metric.better == "more" else 1) * float(f"{value:.{6 if metric is metrics[-1] else 9}g}")
        for metric, value in zip(metrics, values, strict=False)
    )


def _differ(run: Outcome, other: Outcome) -> bool:
    return bool(compare_ranks(run.system.ranks, headline_values(run), headline_values(other), SAME))


def _is_same(value: float, other: float) -> bool:
    return abs(value - other) <= SAME * max(abs(value), abs(other))


def _reaches(value: float, bound: float, within: float) -> bool:
    return (relative_gap(value, bound) or 0.0) <= within


def _rounded(value: float) -> float:
    """Return a value with four significant digits, as tables show it: whole from a thousand to a million."""
    if abs(value) >= 1e6:
        return float(f"{value:.4g}")
    return float(round(value)) if abs(value) >= 1e3 else float(f"{value:.4g}")
