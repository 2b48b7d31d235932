"""Plain twins of the congestion controls: one object for each sender."""

from __future__ import annotations

import math
from typing import Any

S = 1e11  # ticks in a second
LEAST = 2.0


class Control:
    """Reno."""

    def __init__(self, how: dict[str, Any], index: int) -> None:
        self.how, self.index, self.lost = how, index, 0

    def due(self) -> float:
        return -math.inf

    def sends(self, sender: Any, now: float, count: int) -> None: ...

    def marks(self, sender: Any, number: int, newly: int, marked: bool) -> None: ...

    def replies(self, sender: Any, now: float, number: int, in_flight: int, newly: int) -> None: ...

    def may_grow(self, number: int) -> bool:  # noqa: ARG002
        return True

    def grows(self, sender: Any, now: float, fresh: int) -> None:  # noqa: ARG002
        sender.window += fresh / sender.window

    def loses(self, sender: Any) -> None:
        sender.threshold = sender.window = max(sender.window / 2, LEAST)

    def times_out(self, sender: Any) -> None:
        sender.window = 1.0

    def undo(self) -> None: ...


class Cubic(Control):
    """RFC 9438."""

    C, BETA = 0.4, 0.7

    def __init__(self, how: dict[str, Any], index: int) -> None:
        super().__init__(how, index)
        self.w_max = self.k = self.w_est = self.cwnd_prior = 0.0
        self.epoch: float | None = None
        self.kept: tuple[Any, ...] = (0.0, 0.0, 0.0, 0.0, None)

    def w(self, t: float) -> float:
        return self.C * (t - self.k) ** 3 + self.w_max

    def grows(self, sender: Any, now: float, fresh: int) -> None:
        cwnd = sender.window
        if self.epoch is None:
            self.epoch, self.w_est, self.w_max = now, cwnd, max(self.w_max, cwnd)
            self.k = ((self.w_max - cwnd) / self.C) ** (1 / 3)
        alpha = 3 * (1 - self.BETA) / (1 + self.BETA) if self.w_est < self.cwnd_prior else 1.0
        self.w_est += alpha * fresh / cwnd
        t = (now - self.epoch) / S
        if self.w(t) < self.w_est:
            sender.window = max(cwnd, self.w_est)
        else:
            target = min(max(self.w(t + (sender.smooth or 0.0) / S), cwnd), 1.5 * cwnd)
            sender.window = cwnd + fresh * (target - cwnd) / cwnd

    def loses(self, sender: Any) -> None:
        cwnd = sender.window
        self.kept = self.w_max, self.k, self.w_est, self.cwnd_prior, self.epoch
        self.w_max = cwnd * (1 + self.BETA) / 2 if cwnd < self.w_max else cwnd
        self.cwnd_prior, self.epoch = cwnd, None
        sender.threshold = sender.window = max(cwnd * self.BETA, LEAST)

    def times_out(self, sender: Any) -> None:
        super().times_out(sender)
        self.w_max = 0.0

    def undo(self) -> None:
        self.w_max, self.k, self.w_est, self.cwnd_prior, self.epoch = self.kept


class Dctcp(Control):
    """RFC 8257."""

    def __init__(self, how: dict[str, Any], index: int) -> None:
        super().__init__(how, index)
        self.alpha, self.end, self.cut = 1.0, 0, 0
        self.seen: list[tuple[int, bool]] = []

    def may_grow(self, number: int) -> bool:
        return number >= self.cut

    def marks(self, sender: Any, number: int, newly: int, marked: bool) -> None:
        self.seen.append((newly, marked))
        if number >= self.end:
            share = sum(count for count, was in self.seen if was) / sum(count for count, _ in self.seen)
            self.alpha = self.alpha * (1 - 1 / 16) + share / 16
            self.end, self.seen = sender.sent, []
        if marked and number >= max(sender.recovery, self.cut):
            sender.window = sender.threshold = max(sender.window * (1 - self.alpha / 2), LEAST)
            self.cut = sender.sent


class Bbr(Control):
    """draft-cardwell-iccrg-bbr-congestion-control-00, in its own pseudo-code's order."""

    def __init__(self, how: dict[str, Any], index: int) -> None:
        super().__init__(how, index)
        self.state, self.round, self.next_round = "startup", 0, 0
        self.rates: dict[int, float] = {}
        self.rtprop, self.rtprop_stamp = math.inf, 0.0
        self.full_bw, self.full_count, self.filled = 0.0, 0, False
        self.cycle, self.cycle_stamp = 0, 0.0
        self.prior, self.recovers, self.conserves = 0.0, False, False
        self.pacing, self.next_send = 0.0, 0.0
        self.first_sent = self.delivered_time = 0.0
        self.done: float | None = None
        self.done_round = 0
        self.out: dict[int, tuple[int, float, float, float]] = {}

    def due(self) -> float:
        return self.next_send

    def may_grow(self, number: int) -> bool:  # noqa: ARG002
        return False

    def btlbw(self) -> float:
        return max((rate for index, rate in self.rates.items() if index > self.round - 10), default=0.0)

    def inflight(self, gain: float) -> float:
        if not self.btlbw() or math.isinf(self.rtprop) or not self.rtprop:
            return 10.0
        return gain * (self.btlbw() * self.rtprop) + 3.0 * int(self.how.get("batch", 1))

    def gain(self) -> float:
        high = 2 / math.log(2)
        if self.state == "probe_bw":
            return [1.25, 0.75, 1, 1, 1, 1, 1, 1][self.cycle]
        return {"startup": high, "drain": 1 / high, "probe_rtt": 1.0}[self.state]

    def sends(self, sender: Any, now: float, count: int) -> None:
        if not sender.outstanding:
            self.first_sent = self.delivered_time = now
        for number in range(sender.sent, sender.sent + count):
            self.out[number] = sender.delivered, self.delivered_time, self.first_sent, now
        if not self.pacing:
            self.pacing = 2 / math.log(2) * sender.window / (sender.smooth or 1e8)
        self.next_send = max(self.next_send, now) + math.floor(count / self.pacing)

    def probe_bw(self, now: float) -> None:
        self.state, self.cycle, self.cycle_stamp = "probe_bw", (8 - self.index % 7) % 8, now

    def save(self, sender: Any) -> None:
        keeps = self.recovers or self.state == "probe_rtt"
        self.prior = max(self.prior, sender.window) if keeps else sender.window

    def loses(self, sender: Any) -> None:
        self.save(sender)
        self.recovers = self.conserves = True
        self.next_round = sender.delivered
        sender.window = sender.outstanding + 1.0

    def times_out(self, sender: Any) -> None:
        super().times_out(sender)
        self.conserves = False

    def undo(self) -> None:
        self.recovers = self.conserves = False

    def replies(  # noqa: C901
        self, sender: Any, now: float, number: int, in_flight: int, newly: int
    ) -> None:
        if newly:
            self.delivered_time = now
        begins, trip = False, None
        if newly and number in self.out:
            delivered, delivered_time, first_sent, sent = self.out.pop(number)
            trip = now - sent
            begins = delivered >= self.next_round
            if begins:
                self.next_round, self.round, self.conserves = sender.delivered, self.round + 1, False
            interval = max(sent - first_sent, now - delivered_time)
            self.first_sent = sent
            if interval > 0:
                sample = (sender.delivered - delivered) / interval
                self.rates[self.round] = max(self.rates.get(self.round, 0.0), sample)
        if self.state == "probe_bw":
            lasted = now - self.cycle_stamp > self.rtprop
            if self.gain() > 1:
                lasted = lasted and (self.lost > 0 or in_flight >= self.inflight(self.gain()))
            elif self.gain() < 1:
                lasted = lasted or in_flight <= self.inflight(1.0)
            if lasted:
                self.cycle, self.cycle_stamp = (self.cycle + 1) % 8, now
        if begins and not self.filled:
            grows = self.btlbw() >= 1.25 * self.full_bw
            self.full_bw, self.full_count = (
                (self.btlbw(), 0) if grows else (self.full_bw, self.full_count + 1)
            )
            self.filled = self.full_count >= 3
        if self.state == "startup" and self.filled:
            self.state = "drain"
        if self.state == "drain" and sender.outstanding <= self.inflight(1.0):
            self.probe_bw(now)
        self.check_rtprop(sender, now, trip)
        self.set_window(sender, newly)

    def check_rtprop(self, sender: Any, now: float, trip: float | None) -> None:
        window = self.how.get("rtt_window_us", math.inf)
        expired = now > self.rtprop_stamp + window
        if trip is not None and (trip <= self.rtprop or expired):
            self.rtprop, self.rtprop_stamp = trip, now
        if self.state != "probe_rtt":
            if not expired:
                return
            self.save(sender)
            self.state, self.done = "probe_rtt", None
        if self.done is None:
            if sender.outstanding <= 4:
                self.done, self.done_round = now + math.floor(window / 50), self.round
                self.next_round = sender.delivered
        elif self.round > self.done_round and now > self.done:
            self.rtprop_stamp = now
            sender.window = max(sender.window, self.prior)
            if self.filled:
                self.probe_bw(now)
            else:
                self.state = "startup"

    def set_window(self, sender: Any, newly: int) -> None:
        rate = self.gain() * self.btlbw()
        if rate and (self.filled or rate > self.pacing):
            self.pacing = rate
        gain = {"probe_rtt": 1.0, "probe_bw": 2.0}.get(self.state, 2 / math.log(2))
        if self.recovers:
            if sender.expected >= sender.recovery and not sender.again:
                self.recovers = self.conserves = False
                sender.window = max(sender.window, self.prior)
            else:
                sender.window = max(sender.window - self.lost, 1.0)
        if self.conserves:
            sender.window = max(sender.window, sender.outstanding + newly)
        else:
            if self.filled:
                sender.window = min(sender.window + newly, self.inflight(gain))
            elif sender.window < self.inflight(gain) or sender.delivered < 10:
                sender.window += newly
            sender.window = max(sender.window, 4.0)
        if self.state == "probe_rtt":
            sender.window = min(sender.window, 4.0)
        self.lost = 0


def make(name: str, how: dict[str, Any], index: int) -> Control:
    """The twin of a control; TDTCP's senders are Reno's."""
    return {"reno": Control, "tdtcp": Control, "cubic": Cubic, "dctcp": Dctcp, "bbr": Bbr}[name](how, index)
