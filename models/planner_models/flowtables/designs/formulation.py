"""The formal model of system `flowtables` in Pyomo: masks, their places in the search, and entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.errors import InputError
from planner_models.flowtables.designs.cover import group_headers
from planner_models.flowtables.plan.classification import find_valid
from planner_models.flowtables.plan.metrics import find_punts
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

if TYPE_CHECKING:
    import pyomo.environ as pyo

MOST_BITS: Final = 6
MOST_HEADERS: Final = 16


def formulation(problem: FlowTables, *, most_masks: int = 3) -> pyo.ConcreteModel:
    """Return the model of entries, masks and their order, over all masks of the bits that rules match.

    In each place s of the search, at most one mask is used: z_ms. A header h of w_h connections is served by
    mask m in place s, x_hms, from entry v = h & m, y_mv.

    minimize    sum_h w_h sum_ms p s x_hms + u sum_mv y_mv + p sum_mvs q_mvs
    subject to  sum_ms x_hms = 1                  over masks m that are valid for h
                x_hms <= z_ms
                sum_s x_hms <= y_m,h&m
                sum_m z_ms <= 1                   places are used from the first on
                q_mvs >= y_mv + sum_m z_ms - 1    a miss looks up in every mask

    p is the time of a lookup, u that of an upcall, us; the objective is of a connection in the mean. A mask
    is valid where entries settle the action of all headers that agree on it, as in `classification.is_valid`.

    raises  InputError for more than 6 bits that rules match, or 16 headers, and where not all may be cached
    """
    import pyomo.environ as pyo  # only needed for the formal model

    headers = group_headers(problem)
    masks = list_masks(problem)
    count = len(headers.words)
    if count > MOST_HEADERS:
        raise InputError(f"formulation: there are {count} headers, must be at most {MOST_HEADERS}")
    if problem.most_entries < count:
        raise InputError("formulation: the cache may not hold an entry for each header, must be able to")
    valid = np.asarray(find_valid(headers.words, masks, problem.entries))
    entry = {
        (m, h): (m, tuple((headers.words[h] & masks[m]).tolist()))
        for m in range(len(masks))
        for h in range(count)
        if valid[m, h]
    }
    entries = sorted(set(entry.values()))
    number = {item: index for index, item in enumerate(entries)}
    probe, upcall = problem.probe_us, problem.cost("upcall_us")
    m_ = pyo.ConcreteModel("entries of a cache")
    m_.S, m_.M = pyo.RangeSet(1, most_masks), pyo.RangeSet(0, len(masks) - 1)
    m_.H, m_.Y = pyo.RangeSet(0, count - 1), pyo.RangeSet(0, len(entries) - 1)
    m_.MH = pyo.Set(initialize=sorted(entry), dimen=2)
    m_.x = pyo.Var(m_.MH, m_.S, domain=pyo.NonNegativeReals)
    m_.z, m_.y = pyo.Var(m_.M, m_.S, domain=pyo.Binary), pyo.Var(m_.Y, domain=pyo.Binary)
    m_.q = pyo.Var(m_.Y, m_.S, domain=pyo.NonNegativeReals)

    def is_used(model: Any, s: int) -> Any:
        return sum(model.z[m, s] for m in model.M)

    def served(model: Any, h: int) -> Any:
        return sum(model.x[m, h, s] for m in model.M if valid[m, h] for s in model.S) == 1

    def looked_up(model: Any, y: int, s: int) -> Any:
        return model.q[y, s] >= model.y[y] + is_used(model, s) - 1

    def ordered(model: Any, s: int) -> Any:
        return is_used(model, s) <= (1 if s == 1 else is_used(model, s - 1))

    m_.served = pyo.Constraint(m_.H, rule=served)
    m_.used = pyo.Constraint(m_.MH, m_.S, rule=lambda model, m, h, s: model.x[m, h, s] <= model.z[m, s])
    m_.installed = pyo.Constraint(
        m_.MH,
        rule=lambda model, m, h: sum(model.x[m, h, s] for s in model.S) <= model.y[number[entry[m, h]]],
    )
    m_.ordered = pyo.Constraint(m_.S, rule=ordered)
    m_.looked_up = pyo.Constraint(m_.Y, m_.S, rule=looked_up)
    m_.goal = pyo.Objective(
        expr=(
            sum(float(headers.weight[h]) * probe * s * m_.x[m, h, s] for m, h in m_.MH for s in m_.S)
            + upcall * sum(m_.y[y] for y in m_.Y)
            + probe * sum(m_.q[y, s] for y in m_.Y for s in m_.S)
            + upcall * float(find_punts(problem).sum())
        )
        / len(problem.flows),
        sense=pyo.minimize,
    )
    return m_


def list_masks(problem: FlowTables) -> Words:
    """Return all masks of the bits that rules match, (m, words); raises InputError for more than 6 bits."""
    used = problem.layout.to_numbers(problem.used_mask[None, :])[0]
    bits = [1 << bit for bit in range(used.bit_length()) if used >> bit & 1]
    if len(bits) > MOST_BITS:
        raise InputError(f"formulation: rules match {len(bits)} bits, must be at most {MOST_BITS}")
    numbers = [
        sum(bit for index, bit in enumerate(bits) if subset >> index & 1) for subset in range(1 << len(bits))
    ]
    return problem.layout.to_words(numbers)
