"""Top of the answer: the question in words, the verdict, and headline figures with their changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import streamlit as st

from planner.contract.metrics import Metric
from planner.contract.system import System
from planner.formatting import few
from planner.runs.verdict import UNFAILED, Sentence
from planner_dashboard.worker import Answer, DesignAnswer

LEAST: Final = 1e-6
"""Smaller figures are shown as less than this."""
MAX_FIGURES: Final = 4
MAX_NAMED_CHANGES: Final = 2
MAX_HEADING: Final = 160
"""Letters of the heading's first sentence; clauses beyond them stand below it."""
SAME: Final = 1e-6
"""Relative difference up to which a figure is the same as before."""


@dataclass(frozen=True)
class Figure:
    """A figure of a plan: `value` and `unit` as shown, and its change since the plan before, if any.

    about   what the figure is, for a pointer over its label
    change  amount without sign, "" for none
    rises   whether it is larger than before
    is_good whether the change is an improvement; None where neither direction is better
    """

    label: str
    value: str
    unit: str
    about: str = ""
    change: str = ""
    before: str = ""
    rises: bool = False
    is_good: bool | None = None


def show_verdict(sentences: Sequence[Sentence], changes: Sequence[str], address: str = "") -> None:
    """Show the verdict: the best design's value and the users' losses by it; then the other sentences.

    changes  the changed elements of the question, in words
    address  of the question, which the page's source names (`Question.address_lines`)
    """
    if not sentences:
        return
    first, *others = sentences
    main, beside = split_clauses(under_changes(first.text, changes))
    head = [escape(main)]
    head += [
        f"<span class='planner-loss'>{escape(sentence.text)}</span>"
        for sentence in others
        if sentence.is_loss
    ]
    more = [sentence.text for sentence in others if not (sentence.is_loss or sentence.is_paragraph)]
    reasons = [" ".join([*beside, *more])]
    reasons += [sentence.text for sentence in others if sentence.is_paragraph]
    asked = f' data-question="{escape(address)}"' if address else ""
    # an h2, so that screen readers find it: the page's title is the h1
    st.html(
        f'<h2 class="planner-verdict" style="padding:0"{asked}>{" ".join(head)}</h2>'
        + "".join(f"<p class='planner-reasons'>{escape(text)}</p>" for text in reasons if text)
    )


def verdict_text(sentences: Sequence[Sentence], changes: Sequence[str]) -> str:
    """Return the text of the heading that `show_verdict` shows."""
    first, *others = sentences
    losses = [sentence.text for sentence in others if sentence.is_loss]
    return " ".join([split_clauses(under_changes(first.text, changes))[0], *losses])


def split_clauses(sentence: str) -> tuple[str, list[str]]:
    """Return the first clauses of a sentence that a heading holds, and a sentence of those beyond."""
    first, *clauses = sentence.split("; ")
    while clauses and len(first) + len(clauses[0]) <= MAX_HEADING:
        first += f"; {clauses.pop(0)}"
    if not clauses:
        return first, []
    beyond = "; ".join(clauses)
    return f"{first}.", [beyond[:1].upper() + beyond[1:]]


def under_changes(text: str, changes: Sequence[str]) -> str:
    """Return a sentence that begins with the changes: `With Koblenz – Koeln failed, ecmp delivers ...`."""
    if not changes:
        return text
    if text.startswith(UNFAILED):
        text = "without further failures, " + text.removeprefix(UNFAILED)
    if len(changes) > MAX_NAMED_CHANGES:
        return f"With {few(list(changes)[:1])} and {len(changes) - 1} more changes, {text}"
    return f"With {' and '.join(changes)}, {text}"


def figures_of(system: System, design: DesignAnswer, before: DesignAnswer | None) -> list[Figure]:
    """Return the most important figures of a design's plan, with their changes since the plan before."""
    values = design.figures.metrics
    headline = system.plan.headline
    losses = [name for name in headline.losses if values.get(name)]
    first = [*(rank.name for rank in system.ranks), *losses, *headline.in_failures]
    names = [*first, *(metric.name for metric in system.table_metrics)]
    earlier = before.figures.metrics if before is not None else {}
    nothing = {name for name in headline.losses if not values.get(name) and not earlier.get(name)}
    names_shown = [
        name for name in dict.fromkeys(names) if values.get(name) is not None and name not in nothing
    ]
    return [
        _figure(system.metric(name), values.get(name), earlier.get(name))
        for name in names_shown[:MAX_FIGURES]
    ]


def _figure(metric: Metric, value: float | None, before: float | None) -> Figure:
    shown, unit = _split(metric, value)
    if value is None or before is None or abs(value - before) <= SAME * max(abs(value), abs(before)):
        return Figure(metric.label, shown, unit, metric.about)
    was, was_unit = _split(metric, before)
    change, change_unit = _split(metric, abs(value - before))
    if change_unit == "%":
        change_unit = "points"
    rises = value > before
    return Figure(
        metric.label,
        shown,
        unit,
        metric.about,
        change=f"{change} {change_unit if change_unit != unit else ''}".strip(),
        before=was if was_unit == unit else f"{was} {was_unit}",
        rises=rises,
        is_good=(metric.better == "more") == rises if metric.better in ("more", "less") else None,
    )


def _split(metric: Metric, value: float | None) -> tuple[str, str]:
    """Return a value and its unit as texts; a share in percent."""
    text = metric.text(value)
    if text.endswith("%"):
        return text.removesuffix("%"), "%"
    number, _, unit = text.partition(" ")
    return _without_exponent(number), unit


def _without_exponent(number: str) -> str:
    """Return a small number with its digits: `0.000016` for `1.6e-05`; one below LEAST as less than that."""
    if "e-" not in number:
        return number
    return f"{float(number):.7f}".rstrip("0") if float(number) >= LEAST else f"under {LEAST:.6f}"


def show_figures(figures: Sequence[Figure], label: str) -> None:
    """Show figures side by side between two lines; two by two on a narrow page.

    label  of the design whose plan they are of
    """
    cells = []
    for figure in figures:
        since = ""
        if figure.change:
            kind = {True: "planner-better", False: "planner-worse", None: ""}[figure.is_good]
            arrow = "▲" if figure.rises else "▼"
            word = "up" if figure.rises else "down"
            since = (
                f"<b class='{kind}'><span aria-label='{word}' role='img' style='opacity:1'>{arrow}</span> "
                f"{escape(figure.change)}</b> <span>from {escape(figure.before)}</span>"
            )
        cells.append(
            f"<div class='planner-figure'><dt class='planner-label' title='{escape(figure.about)}'>"
            f"{escape(figure.label)}, {escape(label)}</dt>"
            f"<dd class='planner-value'>{escape(figure.value)} <small>{escape(figure.unit)}</small></dd>"
            f"<dd class='planner-since'>{since}</dd></div>"
        )
    st.html(
        f"<dl class='planner-figures' style='--planner-figures:{max(1, len(cells))}'>{''.join(cells)}</dl>"
    )


def show_skeleton() -> None:
    """Show a sentence on planner, and the outline of the answer that a worker is finding."""
    st.html(
        "<p class='planner-reasons'>planner finds plans for networks, proves how good they can be, and "
        "checks each on the true problem. The first answer takes some seconds.</p>"
        "<div class='planner-skeleton' role='img' aria-label='The answer is being found'>"
        "<i style='width:70%;height:34px'></i><i style='width:45%;height:18px'></i>"
        "<i style='height:84px'></i><i style='height:420px'></i></div>"
    )


def show_question(system: System, answer: Answer) -> None:
    """Show the system's question with the size of the problem."""
    st.html(f"<p class='planner-question'>{escape(system.question)} {escape(answer.size)}.</p>")
