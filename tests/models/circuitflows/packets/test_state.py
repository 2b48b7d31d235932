"""Fields of the state in its two arrays."""

from __future__ import annotations

from planner_models.circuitflows.packets import state


def test_fields_fill_both_arrays_without_overlap() -> None:
    extents = {
        "ends": 2,
        "starters": 3,
        "queue_ring": 5,
        "flight_ring": 7,
        "flows": 4,
        "hosts": 6,
        "pairs": 4,
        "pair_ends": 5,
        "senders": 8,
        "records": 11,
        "bbr_rounds": 10,
        "bbr_step": 8,
    }
    made = state.allocate({**extents, "inside": 3, "heap": 9, "returned": 5, "pipe_ring": 8})
    for name, field in state.FIELDS.items():
        if field.shape:
            made.of(name)[...] += 1
    assert (made.ints[state.MARK_PACKETS + 1 :] == 1).all()
    assert (made.reals[state.REPLY_SHARE + 1 :] == 1).all()
    assert (made.ints[: state.MARK_PACKETS + 1] == 0).all()
    assert made.at.ends == 2
    assert made.of("queue_flow").shape == (4, 5)
