"""The control loop: what is seen when, what takes effect when, and the order of what coincides."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract import control_loop
from planner.contract.control_loop import Controller, Round
from planner.contract.design import Decision, Design, Mechanism
from planner.contract.proof import Proof, Status
from planner.errors import InputError


@dataclass
class Tank:
    """Water flows in at 1 a second and out at a rate that is decided; every act is written down."""

    now_s: float = 0.0
    level: float = 0.0
    out: float = 0.0
    acts: list[tuple[str, float, Any]] = field(default_factory=list)

    def advance(self, until_s: float) -> None:
        assert until_s > self.now_s, "time must go on"
        self.level += (1.0 - self.out) * (until_s - self.now_s)
        self.now_s = until_s

    def apply(self, decision: float) -> None:
        self.out = decision
        self.acts.append(("apply", self.now_s, decision))

    def observe(self) -> tuple[float, float, float]:
        self.acts.append(("observe", self.now_s, None))
        return self.now_s, self.level, self.out

    def record(self) -> Mapping[str, pd.DataFrame]:
        return {"tank": pd.DataFrame({"level": [self.level]})}


def constant(value: float) -> Callable[[Any, Any], float]:
    return lambda _believed, _last: value


def applied(tank: Tank) -> list[tuple[float, Any]]:
    return [(index, what) for act, index, what in tank.acts if act == "apply"]


def test_without_a_controller_time_passes() -> None:
    tank = Tank()
    outcome = control_loop.run(tank, [], until_s=3.5)
    assert tank.level == 3.5
    assert outcome.tables["tank"]["level"].tolist() == [3.5]
    assert outcome.rounds.empty


def test_what_is_seen_is_older_by_the_link_and_what_is_decided_later_by_both_delays() -> None:
    seen: list[tuple[float, float, float]] = []

    def decide(observed: tuple[float, float, float], _last: Any) -> float:
        seen.append(observed)
        return 0.5

    tank = Tank()
    controller = Controller(name="c", decide=decide, period_s=1.0, computing_s=0.25, link_s=0.1, first_s=1.0)
    rounds = control_loop.run(tank, [controller], until_s=3.0).rounds
    assert [index for index, _, _ in seen] == pytest.approx([0.9, 1.9])
    assert seen[0][1] == pytest.approx(0.9)
    assert [index for index, _ in applied(tank)] == pytest.approx([1.35, 2.35])
    assert rounds["start_s"].tolist() == [1.0, 2.0]
    assert rounds["observed_s"].tolist() == pytest.approx([0.9, 1.9])
    assert rounds["effect_s"].tolist() == pytest.approx([1.35, 2.35])
    # 1.35 s at the full rate, then 1.65 s at half of it
    assert tank.level == pytest.approx(1.35 + 0.5 * 1.65)


def test_the_first_round_starts_when_the_first_news_arrive() -> None:
    controller = Controller(name="c", decide=constant(1), period_s=10, link_s=2)
    rounds = control_loop.run(Tank(), [controller], until_s=30).rounds
    assert rounds["start_s"].tolist() == [2, 12, 22]
    assert rounds["observed_s"].tolist() == [0, 10, 20]


def test_a_link_longer_than_the_period_keeps_every_round_in_flight() -> None:
    controller = Controller(name="c", decide=constant(1), period_s=1, link_s=3)
    rounds = control_loop.run(Tank(), [controller], until_s=7).rounds
    assert rounds["observed_s"].tolist() == [0, 1, 2, 3]
    assert rounds["start_s"].tolist() == [3, 4, 5, 6]
    assert rounds["outcome"].tolist() == ["applied", "late", "late", "late"]


def test_a_controller_that_still_computes_skips_its_round() -> None:
    controller = Controller(name="c", decide=constant(1), period_s=1, computing_s=2.5)
    rounds = control_loop.run(Tank(), [controller], until_s=7).rounds
    assert rounds["outcome"].tolist() == ["applied", "busy", "busy"] * 2 + ["late"]
    assert rounds["effect_s"].dropna().tolist() == [2.5, 5.5, 8.5]


def test_a_controller_is_free_again_at_the_very_end_of_its_computing() -> None:
    controller = Controller(name="c", decide=constant(1), period_s=0.1, computing_s=0.1)
    rounds = control_loop.run(Tank(), [controller], until_s=5).rounds
    assert set(rounds["outcome"]) == {"applied", "late"}
    assert len(rounds) == 50


def test_nothing_is_done_for_no_change_and_at_the_end() -> None:
    tank = Tank()
    controller = Controller[float](name="c", decide=lambda _b, _l: None, period_s=1)
    rounds = control_loop.run(tank, [controller], until_s=2).rounds
    assert rounds["outcome"].tolist() == ["unchanged", "unchanged"]
    assert rounds["effect_s"].isna().all()
    assert applied(tank) == []


def test_order_of_one_instant() -> None:
    """At 1 s: what was decided at 0 takes effect, then all observe, then all decide, then effects."""
    tank = Tank()
    saw: dict[str, list[tuple[float, float]]] = {"slow": [], "fast": []}

    def decide(name: str, value: float) -> Callable[[Any, Any], float]:
        def its(observed: tuple[float, float, float], _last: Any) -> float:
            saw[name].append((observed[0], observed[2]))
            return value

        return its

    slow = Controller(name="slow", decide=decide("slow", 10), period_s=1, computing_s=1)
    fast = Controller(name="fast", decide=decide("fast", 20), period_s=1)
    control_loop.run(tank, [slow, fast], until_s=2)
    # slow's of 0 is there when both look at 1; fast's, made at 0, too, and was overruled
    assert saw == {"slow": [(0, 0), (1, 10)], "fast": [(0, 0), (1, 10)]}
    assert applied(tank) == [(0, 20), (1, 10), (1, 20)]
    assert [act for act, index, _ in tank.acts if index == 1] == ["apply", "observe", "apply"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_two_decisions_at_once_the_controller_listed_last_stands(order: tuple[str, str]) -> None:
    value = {"a": 1.0, "b": 2.0}
    tank = Tank()
    controllers = [Controller(name=n, decide=constant(value[n]), period_s=1, computing_s=0.5) for n in order]
    control_loop.run(tank, controllers, until_s=1)
    assert applied(tank) == [(0.5, value[order[0]]), (0.5, value[order[1]])]
    assert tank.out == value[order[1]]


def test_tenths_of_a_second_coincide_with_whole_ones() -> None:
    """0.1 summed ten times is not 1.0 in floating point; here it is the same instant."""
    tank = Tank()
    fine = Controller(name="fine", decide=constant(0.1), period_s=0.1)
    coarse = Controller(name="coarse", decide=constant(0.3), period_s=0.3)
    control_loop.run(tank, [fine, coarse], until_s=3)
    assert sum(act == "observe" for act, _, _ in tank.acts) == 30  # coarse never looks on its own
    assert len(applied(tank)) == 40


def test_each_round_is_handed_the_last_one() -> None:
    handed: list[Round[float] | None] = []

    def decide(observed: tuple[float, float, float], last: Round[float] | None) -> float:
        handed.append(last)
        return observed[1]

    controller = Controller(
        name="c",
        decide=decide,
        period_s=1,
        observe=lambda observed: (observed[0], 2 * observed[1], observed[2]),
    )
    control_loop.run(Tank(), [controller], until_s=3)
    assert handed[0] is None
    second = handed[2]
    assert second is not None
    assert (second.observed_s, second.observed, second.decision) == (1.0, (1.0, 2.0, 0.0), 2.0)


def test_a_design_is_a_controller() -> None:
    previous: list[Any] = []

    def decide(problem: float, *, options: Any, previous: Any, goal: float) -> Decision[float]:
        before.append(previous)
        plan = None if problem < 1 else goal
        return Decision(plan=plan, proof=Proof(status=Status.FEASIBLE))

    before = previous
    design = Design(
        name="d",
        decide=decide,
        mechanism=Mechanism.REACTION,
        source="-",
        observe=lambda seen, *, add: seen[1] + add,
    )
    controller = Controller.of_design(design, period_s=1, parameters={"goal": 0.5}, information={"add": 0.25})
    taken: list[Any] = []

    class Plans(Tank):
        def apply(self, decision: Any) -> None:
            taken.append(decision.plan)

    rounds = control_loop.run(Plans(), [controller], until_s=3).rounds
    assert rounds["outcome"].tolist() == ["unchanged", "applied", "applied"]
    assert taken == [0.5, 0.5]
    assert [made.plan if made else None for made in before] == [None, None, 0.5]


@pytest.mark.parametrize(
    ("timing", "fault"),
    [
        ({"period_s": 0.0}, "c: period_s is 0.0, must be at least 1e-9"),
        ({"period_s": math.nan}, "c: period_s is nan, must be at least 1e-9"),
        ({"period_s": 1.0, "computing_s": -1.0}, "c: computing_s is -1.0, must be at least 0"),
        ({"period_s": 1.0, "link_s": math.inf}, "c: link_s is inf, must be at least 0"),
        (
            {"period_s": 1.0, "link_s": 0.5, "first_s": 0.2},
            "c: first_s is 0.2, must be at least link_s 0.5: no observation arrives earlier",
        ),
    ],
)
def test_bad_controllers(timing: dict[str, float], fault: str) -> None:
    with pytest.raises(InputError) as error:
        Controller(name="c", decide=constant(1), **timing)  # type: ignore[arg-type]
    assert str(error.value) == fault


def test_bad_runs() -> None:
    twice = [Controller(name="c", decide=constant(1), period_s=1)] * 2
    with pytest.raises(InputError) as error:
        control_loop.run(Tank(), twice, until_s=-1)
    assert error.value.faults == (
        "c: two controllers have this name",
        "until_s is -1, must be at least 0",
    )


# --- against a plain clock ----------------------------------------------------------------

delays = st.integers(0, 7)
timings = st.lists(
    st.tuples(st.integers(1, 6), delays, delays, delays), min_size=1, max_size=3
)  # period, computing, link, wait beyond the link


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(timings, st.integers(0, 25))
def test_as_a_clock_that_ticks_through_every_second(
    timing: list[tuple[int, int, int, int]], until: int
) -> None:
    def decide(name: str) -> Callable[[Any, Any], Any]:
        return lambda observed, _last: (name, observed[0])

    class Log(Tank):
        def advance(self, until_s: float) -> None:
            assert until_s > self.now_s
            self.now_s = until_s

    tank = Log()
    controllers = [
        Controller(
            name=f"c{i}",
            decide=decide(f"c{i}"),
            period_s=period,
            computing_s=computing,
            link_s=link,
            first_s=link + wait,
        )
        for i, (period, computing, link, wait) in enumerate(timing)
    ]
    rounds = control_loop.run(tank, controllers, until_s=until).rounds

    # the oracle: look at every second in turn, in the stated order
    pending: list[tuple[int, int, Any]] = []  # due, controller, decision
    busy = [0] * len(timing)
    expected: list[tuple[float, Any]] = []
    expected_rounds: list[tuple[str, int, int, str]] = []
    for now in range(until):
        due = sorted((c, d) for index, c, d in pending if index == now)
        expected += [(now, decision) for _, decision in due]
        at_once = []
        for c, (period, computing, link, wait) in enumerate(timing):
            since = now - link - wait
            if since < 0 or since % period:
                continue
            if now < busy[c]:
                expected_rounds.append((f"c{c}", now, now - link, "busy"))
                continue
            busy[c] = now + computing
            effect = now + computing + link
            decision = (f"c{c}", float(now - link))
            if effect == now:
                at_once.append((now, decision))
            else:
                pending.append((effect, c, decision))
            expected_rounds.append((f"c{c}", now, now - link, "applied" if effect < until else "late"))
        expected += at_once
    assert applied(tank) == expected
    columns = [rounds[name].tolist() for name in ("controller", "start_s", "observed_s", "outcome")]
    assert list(zip(*columns, strict=True)) == expected_rounds
    link_of = {f"c{i}": link for i, (_, _, link, _) in enumerate(timing)}
    for controller, start, seen in zip(*columns[:3], strict=True):
        assert seen == start - link_of[controller]  # and so never newer than allowed
