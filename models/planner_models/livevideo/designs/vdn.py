"""VDN's trees: by integer programming where the problem is small, else by decomposition.

The integer program of a small problem takes less than a second, while the kernels of the decomposition
take some twenty to compile where no run on this machine has done so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.livevideo.designs import integer_program, ladders
from planner_models.livevideo.designs.decomposition import decomposition
from planner_models.livevideo.designs.decomposition.decomposition import MostMoved
from planner_models.livevideo.plan.plan import PricedDecision, Trees
from planner_models.livevideo.problem.problem import LiveVideo

MAX_LINKS: Final = 1_000
"""Candidate links of all objects up to which a problem is small."""

PROGRAM_SHARE: Final = 0.5  # share of the time limit for the integer program


def distribute(
    problem: LiveVideo,
    *,
    most_moved: MostMoved = None,
    options: Options = Options(),
    previous: Decision[Trees] | None = None,
) -> Decision[Trees]:
    """Return trees for all objects with a proven bound; the default at any scale.

    Stops at the gap of `options` (default 0.1%) or at the time limit (default 60 s). With `previous` it
    starts from that plan, by decomposition.

    raises  InputError for another backend, since the algorithm is a solver of its own
    source  Mukerjee 2018, section 4.5 and Fig. 4.8
    """
    is_new = previous is None and most_moved is None and options.backend == "highs"
    if not (is_new and _is_small(problem)):
        return ladders.distribute(problem, most_moved=most_moved, options=options, previous=previous)
    gap = decomposition.GAP if options.gap is None else options.gap
    deadline = Deadline.of(options, default_s=decomposition.TIME_LIMIT_S)
    solution = integer_program.solve(
        problem, options=replace(options, gap=gap, time_limit_s=PROGRAM_SHARE * deadline.limit_s)
    )
    left_s = max(deadline.left_s, PROGRAM_SHARE * deadline.limit_s)
    if solution.proof.status is Status.OPTIMAL:
        prices = integer_program.find_dual_prices(problem, Options(time_limit_s=left_s))
        return PricedDecision(plan=solution.plan, proof=solution.proof, prices=prices)
    return ladders.distribute(problem, options=replace(options, time_limit_s=left_s))


def _is_small(problem: LiveVideo) -> bool:
    return 0 < len(problem.requests) <= MAX_LINKS and integer_program.count_links(problem) <= MAX_LINKS
