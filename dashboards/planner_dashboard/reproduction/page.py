"""The page of published values beside ours: all verdicts at once, and one target run again.

Runs of targets in worker processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Final

import pandas as pd
import streamlit as st

from planner.formatting import duration
from planner.reports import study_pages
from planner.runs.reproduction import UNJUDGED, Verdict
from planner.runs.shipped_verdicts import ShippedReproduction, load_shipped
from planner.scenarios.catalogue import find_system, system_names
from planner_dashboard import rendering, session
from planner_dashboard.worker import RenderedParts, render

STYLE: Final = Path(__file__).with_name("style.css")
COLOURS: Final = {
    "reproduced": "#2f8f5b",
    "calibrated": "#86b979",
    "order only": "#d9a032",
    "not reproduced": "#b23a4e",
    "not covered": "#7f8a95",
    "not available": "#98a2ac",
    "no number to compare": "#b3bac1",
    "shortened": "#c9d1d8",
}
MEANINGS: Final = {
    "reproduced": "within the tolerance of the published value",
    "calibrated": "within it, after an open parameter was fitted",
    "order only": "another value, but the same order",
    "not reproduced": "another value",
    "not covered": "no model here computes it",
    "not available": "lost in the source",
    "no number to compare": "a setting of the paper, or a claim without a figure",
    "shortened": "a quick run is too short for it",
}
TIME_LIMIT_S: Final = 3600.0
MOST_KEPT: Final = 8
"""Results of runs that a session keeps."""


def page() -> None:
    """Show the page below its title."""
    st.html(STYLE)
    shipped = load_shipped()
    if not shipped:
        st.info("There are no targets.")
        return
    totals = _totals(shipped)
    every = sum(totals.values())
    agree = totals[str(Verdict.REPRODUCED)] + totals[str(Verdict.CALIBRATED)]
    judged = every - sum(totals[str(verdict)] for verdict in UNJUDGED)
    st.markdown(
        f"**{agree} of {judged} published values agree with ours**, in {len(shipped)} tables and figures of "
        f"the papers. {totals[str(Verdict.ORDER_ONLY)]} more are in the published order."
    )
    st.html(_overview(shipped))
    st.caption("; ".join(f"{name}: {words}" for name, words in MEANINGS.items()))
    st.caption(
        f"Measured by quick runs, or full ones where these are too short, of {_say_versions(shipped)}."
    )
    selected = _show_targets(shipped)
    if selected is not None:
        _show_target(selected, shipped[selected])


def _say_versions(shipped: Mapping[str, ShippedReproduction]) -> str:
    """Return the versions that measured the values, each with its first and last day."""
    days: dict[str, list[str]] = {}
    for shipped_run in shipped.values():
        days.setdefault(shipped_run.version, []).append(str(shipped_run.measured))
    spans = {version: dict.fromkeys([min(dates), max(dates)]) for version, dates in days.items()}
    return ", ".join(f"planner {version} on {' to '.join(span)}" for version, span in spans.items())


# --- all verdicts -------------------------------------------------------------------------


def _totals(shipped: Mapping[str, ShippedReproduction]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for shipped_run in shipped.values():
        totals.update(shipped_run.reproduction.counts())
    return totals


@lru_cache(maxsize=1)
def _by_system() -> dict[str, Counter[str]]:
    """Return the number of values with each verdict by system."""
    counts: dict[str, Counter[str]] = {}
    for shipped_run in load_shipped().values():
        counts.setdefault(shipped_run.reproduction.system.name, Counter()).update(
            shipped_run.reproduction.counts()
        )
    return counts


def _overview(shipped: Mapping[str, ShippedReproduction]) -> str:
    """Return a table of the verdicts on each system, with a bar of their shares."""
    heads = "".join(
        f"<th scope='col'><i style='background:{COLOURS[name]}'></i>{escape(name)}</th>" for name in COLOURS
    )
    rows = [*_by_system().items(), ("all", _totals(shipped))]
    body = "".join(
        f"<tr><th scope='row'>{escape(_title(name))}</th><td class='bar'>{_bar(counts)}</td>"
        + "".join(f"<td>{counts[verdict]}</td>" for verdict in COLOURS)
        + "</tr>"
        for name, counts in rows
    )
    return (
        "<div class='planner-wide' tabindex='0'><table class='verdicts'><thead>"
        "<tr><th scope='col'>system</th><th class='bar'></th>"
        f"{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _title(system: str) -> str:
    """Return the title of a system by its name; other words as they are."""
    return find_system(system).label if system in system_names() else system


def _bar(counts: Mapping[str, int]) -> str:
    total = sum(counts.values()) or 1
    return (
        "<div aria-hidden='true'>"
        + "".join(
            f"<span style='background:{colour};width:{100 * counts[name] / total:.2f}%'></span>"
            for name, colour in COLOURS.items()
        )
        + "</div>"
    )


def _show_targets(shipped: Mapping[str, ShippedReproduction]) -> str | None:
    """Show the targets of the filter with their verdicts; return the selected one, None at first."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        systems = st.pills(
            "Systems", list(_by_system()), selection_mode="multi", format_func=_title, key="target systems"
        )
        verdicts = st.pills("Verdicts", list(COLOURS), selection_mode="multi", key="target verdicts")
    names = [
        name
        for name, shipped_run in shipped.items()
        if (not systems or shipped_run.reproduction.system.name in systems)
        and (not verdicts or any(shipped_run.reproduction.counts()[verdict] for verdict in verdicts))
    ]
    if not names:
        st.info("No target matches the filter.")
        return None
    frame = pd.DataFrame([_row(shipped[name]) for name in names])
    selected = st.dataframe(
        frame,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height=min(420, 38 + 35 * len(frame)),
        key=f"targets {systems} {verdicts}",
        column_config={
            "Agree": st.column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0),
            "Reason": st.column_config.TextColumn(width="large"),
            "What it shows": st.column_config.TextColumn(width="medium"),
        },
    )
    rows = selected["selection"]["rows"]
    clicked = names[rows[0]] if rows else None
    if clicked is not None and clicked != state.get("clicked target"):
        state["target"] = clicked
    state["clicked target"] = clicked
    if "target" not in state:
        state["target"] = session.name_of_address("target", list(shipped), "") or None
    if state["target"] not in names:
        state["target"] = None
    session.show_unknown_name("target", state["target"] or "")
    target: str | None = st.selectbox(
        "Target",
        names,
        index=None,
        format_func=lambda name: (
            f"{shipped[name].reproduction.label}: {shipped[name].reproduction.target.about}"
        ),
        key="target",
        placeholder="Choose a target, here or by its row of the table",
    )
    if target is None:
        st.query_params.pop("target", None)
    else:
        st.query_params["target"] = target
    return target


def _row(shipped: ShippedReproduction) -> dict[str, object]:
    result = shipped.reproduction
    counts = result.counts()
    judged = sum(counts.values()) - sum(counts[str(verdict)] for verdict in UNJUDGED)
    agree = counts[str(Verdict.REPRODUCED)] + counts[str(Verdict.CALIBRATED)]
    return {
        "System": result.system.label,
        "Place": result.target.place,
        "What it shows": result.target.about,
        "Agree": agree / judged if judged else None,
        "Verdicts": ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count),
        "Reason": result.reason,
    }


# --- one target ---------------------------------------------------------------------------


def _show_target(name: str, shipped: ShippedReproduction) -> None:
    """Show a target's values as they ship, or as they were measured here."""
    state = st.session_state
    result = shipped.reproduction
    st.subheader(session.escape_markdown(result.label))
    st.markdown(session.escape_markdown(f"{result.target.about}. {result.reason}"))
    results: dict[tuple[str, bool], RenderedParts] = state.setdefault("reproduced", {})
    taken = session.take_result("reproduce")
    if taken is not None:
        results[state["reproducing"]] = taken
        while len(results) > MOST_KEPT:
            del results[next(iter(results))]
    is_busy = session.is_pending("reproduce")
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, is_quick in (("Run quickly", True), ("Run in full", False)):
            if st.button(label, disabled=is_busy, key=label):
                state["reproducing"] = name, is_quick
                session.submit("reproduce", reproduce, name, is_quick, time_limit_s=TIME_LIMIT_S)
                st.rerun()
        st.caption(f"A quick run took {duration(result.seconds)}; a full one may take up to an hour.")
    st.code(f"planner reproduce {name}", language="shell")
    running = state.get("reproducing", ("", True))
    title = load_shipped()[running[0]].reproduction.label if running[0] else ""
    session.show_progress("reproduce", f"running {title}", "cancelled")
    if running[0] == name:
        session.show_failure("reproduce")
    renderings: Sequence[tuple[bool, RenderedParts]] = [
        (is_quick, results[name, is_quick]) for is_quick in (False, True) if (name, is_quick) in results
    ]
    if not renderings:
        rendering.show_part(study_pages.reproduction_part(result), f"shipped {name}", [])
        return
    is_quick, parts = renderings[0]
    st.caption("Measured here, " + ("quickly." if is_quick else "in full."))
    for number, (section, figures) in enumerate(parts):
        rendering.show_part(section, f"{name} {is_quick} {number}", figures)


def reproduce(name: str, is_quick: bool) -> RenderedParts:
    """Run a target; return its published values beside ours, and its verdicts."""
    from planner.reports import study_pages
    from planner.runs import reproduction

    ((system, target),) = reproduction.find_targets([name])
    result = reproduction.run_target(system, target, quick=is_quick)
    return render(
        [study_pages.reproduction_part(result), study_pages.verdicts_part([result], in_titles=True)]
    )
