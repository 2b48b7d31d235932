"""Fields of the state in its two arrays."""

from __future__ import annotations

from planner_models.circuitflows.plan.packets import state


def test_fields_fill_both_arrays_without_overlap() -> None:
    extents = ("racks", "starters", "queue_ring", "flight_ring", "flows", "hosts", "pairs", "inside", "heap")
    made = state.allocate(dict(zip(extents, (2, 3, 5, 7, 4, 6, 4, 3, 9), strict=True)))
    for name, field in state.FIELDS.items():
        if field.shape:
            made.of(name)[...] += 1
    assert (made.ints[state.OVERFLOW + 1 :] == 1).all()
    assert (made.reals[state.REPLY_SHARE + 1 :] == 1).all()
    assert (made.ints[: state.OVERFLOW + 1] == 0).all()
    assert made.at.racks == 2
    assert made.of("queue_flow").shape == (4, 5)
