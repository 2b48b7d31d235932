"""Runs of targets in worker processes."""

from __future__ import annotations

from planner_dashboard.worker import RenderedParts, render


def reproduce(name: str, is_quick: bool) -> RenderedParts:
    """Run a target; return its published values beside ours, and its verdicts."""
    from planner.reports import study_pages
    from planner.runs import reproduction

    ((system, target),) = reproduction.find_targets([name])
    done = reproduction.run_target(system, target, quick=is_quick)
    return render([study_pages.reproduction_part(done), study_pages.verdicts_part([done])])
