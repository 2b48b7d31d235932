"""Small random problems of system `membership`, for property tests."""

from __future__ import annotations

import pandas as pd
from hypothesis import strategies as st

from planner_models.membership import Membership
from planner_models.membership.problem.generators import service_row

RATES = st.floats(0.0, 30.0).map(lambda rate: round(rate, 3))
REPAIRS = st.sampled_from([60.0, 3_600.0, 86_400.0, 864_000.0])


@st.composite
def memberships(draw: st.DrawFn, *, faults: int = 1) -> Membership:
    """Draw one or two regions with one to two zones, hosts in some, and a risk that two sites share."""
    rows, names = [], []
    for number in range(draw(st.integers(1, 2))):
        region = f"r{number}"
        rows.append(_row(draw, region, "region", ""))
        for letter in "ab"[: draw(st.integers(1, 2))]:
            zone = f"{region}{letter}"
            has_hosts = draw(st.booleans())
            rows.append(_row(draw, zone, "zone", region, hosts=0.0 if has_hosts else 2.0))
            names.append(zone)
            if has_hosts:
                rows.append(_row(draw, f"{zone} hosts", "host", zone, hosts=2.0))
    rows[-1]["hosts"] = 3.0
    rtt = draw(st.sampled_from([5.0, 40.0, 200.0]))
    delays = pd.DataFrame(
        [("r0", "r1", rtt, rtt * 1.5, 0.02)], columns=["from", "to", "rtt_ms", "p99_ms", "loss"]
    )
    risks = None
    if len(names) > 1 and draw(st.booleans()):
        rate, repair = draw(RATES), draw(REPAIRS)
        risks = pd.DataFrame(
            [("feed", name, rate, repair) for name in names[:2]],
            columns=["risk", "site", "fails_per_month", "repair_s"],
        )
    return Membership(
        sites=pd.DataFrame(rows),
        delays=delays if any(row["site"] == "r1" for row in rows) else None,
        services=pd.DataFrame([service_row(faults=float(faults))]),
        shared_risks=risks,
    )


def _row(
    draw: st.DrawFn, site: str, kind: str, parent: str, hosts: float = float("nan")
) -> dict[str, object]:
    return {
        "site": site,
        "kind": kind,
        "parent": parent,
        "fails_per_month": draw(RATES),
        "repair_s": draw(REPAIRS),
        "price_per_month": float(draw(st.integers(1, 3))),
        "hosts": hosts,
    }
