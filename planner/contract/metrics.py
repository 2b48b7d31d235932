"""Metrics: the figures by which plans are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from planner.formatting import figure, heading

Better = Literal["more", "less", "neither"]
"""The better direction of a metric."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a plan; its value is None where it has no meaning.

    better  "neither" for a figure that describes a plan and does not judge it, such as a number of members
    title  words of a label, without a capital, where the name makes no good ones
    """

    name: str
    unit: str
    better: Better
    about: str
    source: str = ""
    title: str = ""

    @property
    def label(self) -> str:
        """The name as a label without its unit, such as "Max utilization"."""
        return self.words[0].upper() + self.words[1:]

    @property
    def words(self) -> str:
        """The name as words within a sentence, without its unit, such as "max utilization"."""
        return self.title or heading(self.name, self.unit)

    def text(self, value: float | None) -> str:
        """Return a value with its unit as users read it: `39.9 Gbit/s`, `86.54%`; `-` for unknown."""
        return figure(self.name, value, self.unit)


def more(name: str, unit: str, about: str, source: str = "", *, title: str = "") -> Metric:
    """Return a metric of which more is better."""
    return Metric(name=name, unit=unit, better="more", about=about, source=source, title=title)


def less(name: str, unit: str, about: str, source: str = "", *, title: str = "") -> Metric:
    """Return a metric of which less is better."""
    return Metric(name=name, unit=unit, better="less", about=about, source=source, title=title)


def neither(name: str, unit: str, about: str, source: str = "", *, title: str = "") -> Metric:
    """Return a metric that describes a plan, of which neither more nor less is better."""
    return Metric(name=name, unit=unit, better="neither", about=about, source=source, title=title)


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The metric that a system is about, and the words of the sentence that gives it.

    metric     name of the figure that users of the network get in truth, by one rule for all designs
    verb       of the sentence, e.g. "delivers": "ecmp delivers 38.9 of 40.8 Gbit/s"; the amount follows, or
               stands for "{}"
    total      name of the metric that says how much was asked for; "" where there is none
    then       name of the metric that ranks plans equal in `metric`, such as their cost; "" for none
    then_words words before its amount, e.g. "at a cost of"
    then_period  (problem) -> the time that `then` is for, or who it goes to, after its amount, such as "for
               168 windows"
    then_terms (problem) -> what `then` adds up, in brackets after its amount, where it is a sum with weights:
               "1 x score of each client + 1,000 x EUR per hour"; "" for nothing. A verdict says it once
    words      (metrics) -> what users get, with its verb, where `metric` combines several figures: a sentence
               gives it before `metric`: "serves 134 of 140 clients, for traffic that costs 81.2"
    losses     verb by the name of each metric that says what users lose, e.g. {"shed_mbps": "sheds"}
    worst      names of the metrics of `losses` that a verdict gives first, before the headline metric, as it
               would hide them: users who get nothing, where the headline is a share of all
    fallbacks  verb by the name of each metric that counts what is served in a worse way, where no user
               loses by it, e.g. {"groups_by_unicast": "uses unicast for"}
    growth     name of the metric that says by which factor all demand can grow before something is lost;
               "" where there is none. Upgrades improve it where nothing is lost
    in_failures  words before the amounts in a sentence, by the name of each metric that says what a plan
               keeps in failures, where its value is known: {"availability": "Availability"}. Designs that
               plan for failures give up some of `metric` for these, so a verdict gives both
    guarantees  verb by the name of the metric of `in_failures` that says what a plan guarantees: a verdict
               on a plan with such a value gives it before what the plan reaches without failures
    cost       name of the metric that costs of failures are in, where `metric` is relative to what a problem
               allows, which a failure lowers too; "" where `metric`, or what users lose, says it
    table      names of the metrics that a table shows first, about eight of those with a value; () for the
               first eight
    unavoidable  function of a plan's metrics that returns the sentence on what every plan loses, which
               `metric` does not count, such as demands that a failure cuts off; "" for nothing. A verdict
               begins with it
    unservable  function of a problem that returns the sentence on demands that no plan can serve, with their
               names; "" for none. A verdict begins with it
    unservable_losses  function of a problem that returns the amounts that this sentence says, by the metric
               of `losses` that has them: a verdict says of a loss only what exceeds them
    required   by the name of each constraint that no plan may violate at any gain, such as rules of routes,
               the metric that counts it: a plan that violates one is never best where another does not
    details    function of a problem and a plan that returns sentences, without a stop, on what was decided:
               a verdict gives those of the best plan after its headline metric
    """

    metric: str
    verb: str
    total: str = ""
    then: str = ""
    then_words: str = ""
    then_period: Callable[[Any], str] | None = None
    then_terms: Callable[[Any], str] | None = None
    words: Callable[[Mapping[str, float | None]], str] | None = None
    losses: Mapping[str, str] = field(default_factory=dict)
    worst: tuple[str, ...] = ()
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    growth: str = ""
    in_failures: Mapping[str, str] = field(default_factory=dict)
    guarantees: Mapping[str, str] = field(default_factory=dict)
    cost: str = ""
    table: tuple[str, ...] = ()
    unavoidable: Callable[[Mapping[str, float | None]], str] | None = None
    unservable: Callable[[Any], str] | None = None
    unservable_losses: Callable[[Any], Mapping[str, float]] | None = None
    required: Mapping[str, str] = field(default_factory=dict)
    details: Callable[[Any, Any], Sequence[str]] | None = None


MONEY: Final = "monetary units"
"""Unit of amounts of money, which are in the currency of a problem's prices."""
MOST_TABLE_METRICS: Final = 8
"""Metrics that a table shows unless all are requested."""


SIGNALLING_METRICS: Final = (
    Metric(
        name="messages",
        unit="messages",
        better="less",
        about="messages between control planes for this decision",
    ),
    Metric(
        name="signalling_bytes",
        unit="bytes",
        better="less",
        about="content of these messages, without headers",
    ),
)
"""Metrics of every system with designs that count their signalling."""
