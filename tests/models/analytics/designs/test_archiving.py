"""Places of stored data against brute force over plain readings of the tables, and the formal model."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends import pyomo
from planner.contract.proof import Status
from planner.errors import InputError, PlanRejected
from planner.options import Options
from planner_models.analytics import SYSTEM, Analytics, check, measure
from planner_models.analytics.designs import archiving
from planner_models.analytics.designs.archive_formulation import archive_formulation
from planner_models.analytics.plan.archived import tabulate_archived
from planner_models.analytics.problem.archives import PLACES, read_archives, read_stores
from tests.models.analytics.problems import tables

MONTH_S = 30 * 86_400.0
ARCHIVES = [
    "query", "keep_days", "bytes_per_record", "bytes_per_cell", "reads_per_month", "read_level", "value_usd",
]  # fmt: skip
RULES = ["region", "cube", "query", "to", "finest"]
STORES = ["place", "usd_per_gb_month", "capacity_gb", "link_mbps"]


@st.composite
def stored(draw: st.DrawFn) -> dict[str, pd.DataFrame]:
    """Draw three sites at two points of presence, two queries, places of storage, and rules of regions."""
    made = tables(sites=3, combine=("coarsest", "sum"))
    price = st.sampled_from([0.0, 0.1, 0.5])
    made["sites"] = made["sites"].assign(pop=["p", "p", "r"], region=["a", "a", "b"], usd_per_gb=draw(price))
    made["pops"] = pd.DataFrame(
        {
            "pop": ["p", "r"],
            "uplink_mbps": 10.0,
            "merges": "yes",
            "region": [draw(st.sampled_from(["", "a", "c"])), ""],
            "usd_per_gb": draw(price),
        }
    )
    made["central"] = pd.DataFrame({"region": [draw(st.sampled_from(["c", "a", ""]))]})
    made["volume"] = made["volume"].assign(
        records=[draw(st.integers(1, 9)) * 1e6 for _ in range(3)],
        cells=[draw(st.integers(1, 9)) * 1e4 for _ in range(3)],
    )
    rows = []
    for query in ("q0", "q1"):
        reads = draw(st.sampled_from([0.0, 0.0, 1.0, 8.0]))
        level = draw(st.sampled_from(["1 s", "5 s", "10 s"]))
        days = draw(st.sampled_from([1.0, 30.0]))
        rows.append((query, days, 1.0, 2.0, reads, level, draw(st.integers(1, 9)) * 20.0 * days))
    made["archives"] = pd.DataFrame(rows, columns=ARCHIVES)
    amount = st.sampled_from([np.nan, 300.0, 50.0, 5.0])
    rate = st.sampled_from([np.nan, np.nan, 2.0, 0.5])
    store_at = {"", *draw(st.sets(st.sampled_from(["s0", "s1", "s2", "p", "r"]), min_size=4))}
    scale = {"s0": 0.5, "s1": 0.5, "s2": 0.5, "p": 0.2, "r": 0.2, "": 0.1}
    made["stores"] = pd.DataFrame(
        [
            (name, scale[name] * draw(st.integers(1, 3)), draw(amount), draw(rate) if name else np.nan)
            for name in sorted(store_at)
        ],
        columns=STORES,
    )
    made["stores"]["capacity_gb"] = made["stores"]["capacity_gb"].astype(float)
    finest = draw(st.sampled_from(["5 s", "", "1 s"]))
    made["laws"] = pd.DataFrame(
        [("a", "", draw(st.sampled_from(["", "q1"])), "", finest)][: draw(st.sampled_from([1, 1, 0]))],
        columns=["region", "cube", "query", "to", "finest"],
    )
    made["retention"] = pd.DataFrame(
        {"region": ["b"], "cube": "", "at_most_h": draw(st.sampled_from([24.0, 100.0]))}
    )
    return made


class Reading:
    """Plain reading of the tables: what storing the data of a query and site needs at each place."""

    def __init__(self, made: dict[str, pd.DataFrame]) -> None:
        self.made = made
        self.sites = made["sites"].set_index("site")
        self.pops = made["pops"].set_index("pop")
        self.stores = made["stores"].set_index("place")
        self.pairs = list(itertools.product(made["archives"].to_dict("records"), self.sites.index))

    def need(self, entry: dict[str, Any], site: str, place: str) -> tuple[float, dict[str, float], float]:
        """Return gigabytes, rates on uplinks and the cost of a month."""
        volume = self.made["volume"].set_index("site").loc[site]
        seconds = 60.0
        size = (
            volume["records"] * entry["bytes_per_record"] + volume["cells"] * entry["bytes_per_cell"]
        ) / seconds
        kept_s = entry["keep_days"] * 86_400
        per_cell = {"1 s": 16.0, "5 s": 8.0, "10 s": 4.0}[entry["read_level"]]
        read = volume["cells"] * per_cell / seconds * kept_s * entry["reads_per_month"] / MONTH_S
        pop = str(self.sites.loc[site, "pop"])
        on_site, on_pop = {"site": (read, read), "pop": (size, read), "datacenter": (size, size)}[place]
        gb = size * kept_s / 1e9
        name = {"site": site, "pop": pop, "datacenter": ""}[place]
        price = self.stores["usd_per_gb_month"].get(name, 0.0)
        usd = gb * price + MONTH_S / 1e9 * (
            on_site * self.sites.loc[site, "usd_per_gb"] + on_pop * self.pops.loc[pop, "usd_per_gb"]
        )
        return gb, {site: on_site * 8 / 1e6, pop: on_pop * 8 / 1e6}, float(usd)

    def is_allowed(self, entry: dict[str, Any], site: str, place: str) -> bool:
        region = self.sites.loc[site, "region"]
        if region == "b" and entry["keep_days"] * 24 > self.made["retention"]["at_most_h"].iloc[0]:
            return False
        pop_region = self.pops.loc[self.sites.loc[site, "pop"], "region"] or region
        center = self.made["central"]["region"].iloc[0]
        for rule in self.made["laws"].to_dict("records"):
            if region != rule["region"] or rule["query"] not in ("", entry["query"]):
                continue
            finest = {"": 9, "1 s": 0, "5 s": 1}[rule["finest"]]
            leaves_to_pop, leaves = pop_region != region, pop_region != region or center != region
            level = ["1 s", "5 s", "10 s"].index(entry["read_level"])
            if entry["reads_per_month"] > 0 and leaves and level < finest:
                return False
            copied = {"site": False, "pop": leaves_to_pop, "datacenter": leaves}[place]
            if copied and finest > 0:
                return False
        return True

    def value(self, entry: dict[str, Any], site: str) -> float:
        records = self.made["volume"].set_index("site")["records"]
        return float(entry["value_usd"] * records[site] / records.sum())

    def find_least(self) -> float:
        """Return the least cost of all combinations of places, with the value of discarded data."""
        choices = []
        for entry, site in self.pairs:
            options: list[Any] = [(None, {}, self.value(entry, site), "")]
            for place in PLACES:
                if self.is_allowed(entry, site, place):
                    gb, rates, usd = self.need(entry, site, place)
                    name = {"site": site, "pop": self.sites.loc[site, "pop"], "datacenter": ""}[place]
                    options.append((gb, rates, usd, name))
            choices.append(options)
        least = np.inf
        for picked in itertools.product(*choices):
            total = sum(usd for _, _, usd, _ in picked)
            if total < least and self.fits(picked):
                least = total
        return float(least)

    def fits(self, picked: tuple[Any, ...]) -> bool:
        stored: dict[str, float] = {}
        carried: dict[str, float] = {}
        for gb, rates, _, name in picked:
            if gb is None:
                continue
            stored[name] = stored.get(name, 0.0) + gb
            for link, rate in rates.items():
                carried[link] = carried.get(link, 0.0) + rate
        for amounts, column in ((stored, "capacity_gb"), (carried, "link_mbps")):
            for name, amount in amounts.items():
                limit = self.stores[column].get(name, 0.0)
                if not np.isnan(limit) and amount > limit * (1 + 1e-9) + 1e-12:
                    return False
        return True


@settings(max_examples=40, deadline=None)
@given(stored())
def test_places_are_those_of_least_cost_of_all_combinations(made: dict[str, pd.DataFrame]) -> None:
    problem = Analytics.from_tables(made)
    least = Reading(made).find_least()
    decision = SYSTEM.design("storage").run(problem)
    assert decision.plan is not None
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(least, rel=1e-6, abs=1e-6)
    assert decision.proof.bound == pytest.approx(least, rel=1e-4, abs=1e-4)
    assert not len(check(problem, decision.plan))
    metrics = measure(problem, decision.plan, None)
    assert metrics["storage_total"] == pytest.approx(least, rel=1e-6, abs=1e-6)
    reference = pyomo.solve_model(archive_formulation(problem), Options(backend="pyomo:highs", gap=1e-9))
    assert reference.objective == pytest.approx(least, rel=1e-6, abs=1e-6)


@settings(max_examples=15, deadline=None)
@given(stored())
def test_no_restricted_or_greedy_plan_beats_the_bound(made: dict[str, pd.DataFrame]) -> None:
    problem = Analytics.from_tables(made)
    best = SYSTEM.design("storage").run(problem).proof
    assert best.bound is not None
    archived, stores = read_archives(problem), read_stores(problem)
    for store_at in (*PLACES, "any"):
        run = SYSTEM.design("storage").run(problem, parameters={"store_at": store_at})
        assert run.plan is not None
        assert not len(check(problem, run.plan))
        assert set(run.plan.archived["at"]) <= ({store_at} if store_at != "any" else set(PLACES))
        assert (run.proof.objective or 0.0) >= best.bound - 1e-6 * abs(best.bound) - 1e-9
    may = archiving.find_choices(archived, stores)
    greedy = archiving.assign_greedily(archived, stores, may)
    plan = replace(run.plan, archived=tabulate_archived(problem, archived, greedy))
    assert not len(check(problem, plan))
    assert archiving.find_total(archived, greedy) >= best.bound - 1e-6 * abs(best.bound) - 1e-9


def make_stored(**changed: Any) -> dict[str, pd.DataFrame]:
    """Return two sites of one query whose data is 0.1 MB/s each, 8.64 GB a day."""
    made = tables(sites=2)
    made["sites"]["region"] = "a"
    made["volume"] = made["volume"].assign(records=6e6, cells=6e4)
    made["archives"] = pd.DataFrame([("q0", 1.0, 1.0, 0.0, 30.0, "1 s", 100.0)], columns=ARCHIVES)
    made["stores"] = pd.DataFrame(
        [
            ("s0", 1.0, np.nan, np.nan),
            ("s1", 1.0, np.nan, np.nan),
            ("p", 0.5, 10.0, np.nan),
            ("", 0.1, np.nan, np.nan),
        ],
        columns=STORES,
    )
    return made | changed


def run_storage(made: dict[str, pd.DataFrame], **parameters: Any) -> Any:
    return SYSTEM.design("storage").run(Analytics.from_tables(made), parameters=parameters)


def test_cheap_bandwidth_stores_in_the_datacenter_and_dear_bandwidth_at_the_edge() -> None:
    made = make_stored()
    assert run_storage(made).plan.archived["at"].tolist() == ["datacenter", "datacenter"]
    made["pops"]["usd_per_gb"] = 1.0
    made["archives"]["reads_per_month"] = 0.0
    store_at = run_storage(made).plan.archived["at"].tolist()
    assert sorted(store_at) == ["pop", "site"]  # the point of presence has space for the data of one site
    made["sites"]["usd_per_gb"] = 1.0
    assert run_storage(made).plan.archived["at"].tolist() == ["site", "site"]


def test_all_must_be_stored_where_all_is_to_be_served() -> None:
    made = make_stored()
    made["stores"] = made["stores"].assign(capacity_gb=[9.0, 1.0, 1.0, 1.0])
    decision = SYSTEM.design("storage").run(Analytics.from_tables(made), options=Options(service="all"))
    assert decision.proof.status is Status.INFEASIBLE
    assert "data of query 'q0' at site 's1' has no place" in decision.proof.reasons[0]
    made["stores"] = made["stores"].assign(capacity_gb=[1.0, 1.0, 9.0, 1.0])
    decision = SYSTEM.design("storage").run(Analytics.from_tables(made), options=Options(service="all"))
    assert decision.proof.reasons == ("stored data does not fit into the capacities of places and uplinks",)


def test_the_check_finds_full_places_and_uplinks_and_places_that_rules_deny() -> None:
    made = make_stored()
    plan = run_storage(made).plan
    made["stores"] = made["stores"].assign(capacity_gb=1.0, link_mbps=[0.5, 9.0, 9.0, np.nan])
    made["central"] = pd.DataFrame({"region": ["b"]})
    made["laws"] = pd.DataFrame(
        [("a", "", "", "b", "5 s")], columns=["region", "cube", "query", "to", "finest"]
    )
    limits = set(check(Analytics.from_tables(made), plan).frame["limit"])
    assert {"stores", "storage_links", "storage_rules"} <= limits
    wrong = replace(plan, archived=plan.archived.assign(gb=1.0))
    with pytest.raises(PlanRejected, match=r"archived row 1: gb is 1, must be 8\.64"):
        check(Analytics.from_tables(make_stored()), wrong)
    unknown = replace(plan, archived=plan.archived.assign(site="s7"))
    with pytest.raises(PlanRejected, match="no data of query 'q0' at site 's7'"):
        check(Analytics.from_tables(make_stored()), unknown)


@pytest.mark.parametrize(
    ("table", "changed", "message"),
    [
        ("stores", {"place": ["s0", "s1", "q", ""]}, "stores row 3: place 'q' is neither a site nor"),
        ("stores", {"link_mbps": [1.0, 1.0, 1.0, 1.0]}, "stores row 4: link_mbps is 1, must be blank"),
        ("stores", {"usd_per_gb_month": -1.0}, "stores row 1: usd_per_gb_month is -1.0, must be at least 0"),
        ("archives", {"read_level": "2 s"}, "archives row 1: read_level: query 'q0' has no level '2 s'"),
        ("archives", {"read_level": "none"}, "archives row 1: read_level is 'none', which sends no data"),
        ("archives", {"query": "q9"}, "archives row 1: query 'q9' is no query"),
        ("archives", {"keep_days": 0.0}, "archives row 1: keep_days is 0.0, must be greater than 0"),
    ],
)
def test_faults_name_row_field_and_rule(table: str, changed: dict[str, Any], message: str) -> None:
    made = make_stored()
    made[table] = made[table].assign(**changed)
    with pytest.raises(InputError) as error:
        Analytics.from_tables(made)
    assert any(fault.startswith(message) for fault in error.value.faults), error.value.faults


def test_archives_need_places_of_storage() -> None:
    made = make_stored()
    del made["stores"]
    with pytest.raises(InputError, match="archives row 1: needs table stores"):
        Analytics.from_tables(made)


def test_the_reason_names_the_rule_and_what_is_full() -> None:
    made = make_stored(retention=pd.DataFrame({"region": ["a"], "cube": "", "at_most_h": 12.0}))
    problem = Analytics.from_tables(made)
    archived = read_archives(problem)
    plan = SYSTEM.design("storage").run(problem).plan
    assert plan is not None
    assert not len(plan.archived)
    place = np.full(2, -1)
    remaining = archiving.find_remaining(archived, read_stores(problem), place)
    reason = archiving.explain_place(problem, archived, remaining, place, 0)
    assert "but retention row 1 lets data be kept for 12 hours" in reason
    made["stores"] = made["stores"].assign(capacity_gb=[9.0, 9.0, 1.0, 1.0])
    del made["retention"]
    problem = Analytics.from_tables(made)
    archived, place = read_archives(problem), np.array([0, 0])
    remaining = archiving.find_remaining(archived, read_stores(problem), place)
    reason = archiving.explain_place(problem, archived, remaining, place, 0)
    assert reason.endswith("but the storage of the datacenter has too little left")


def test_without_archives_nothing_is_stored_and_other_designs_keep_nothing() -> None:
    problem = Analytics.from_tables(tables(sites=2))
    decision = SYSTEM.design("storage").run(problem)
    assert (decision.proof.status, decision.proof.objective) == (Status.OPTIMAL, 0.0)
    stored_problem = Analytics.from_tables(make_stored())
    plan = SYSTEM.design("optimum").run(stored_problem).plan
    assert plan is not None
    assert "archived" not in plan.to_tables()
    assert measure(stored_problem, plan, None)["discarded_loss"] == pytest.approx(100.0)


@pytest.mark.slow
def test_many_sites_are_near_the_bound() -> None:
    problem = make_large(400)
    decision = SYSTEM.design("storage").run(problem, options=Options(gap=1e-3))
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 1e-3
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))


def make_large(sites: int) -> Analytics:
    """Return sites at ten points of presence with four queries, whose places hold a part of their data."""
    rng = np.random.default_rng(1)
    made = tables(sites=sites, combine=("sum",) * 4)
    made["sites"] = made["sites"].assign(pop=[f"p{row % 10}" for row in range(sites)], usd_per_gb=0.02)
    made["pops"] = pd.DataFrame(
        {"pop": [f"p{row}" for row in range(10)], "uplink_mbps": 1e3, "merges": "yes", "usd_per_gb": 0.08}
    )
    made["volume"] = made["volume"].assign(records=rng.integers(1, 9, sites) * 1e6, cells=1e4)
    rows = [(f"q{row}", 7.0 * (row + 1), 1.0, 0.0, row * 2.0, "5 s", 40.0 * sites) for row in range(4)]
    made["archives"] = pd.DataFrame(rows, columns=ARCHIVES)
    total = float(made["volume"]["records"].sum()) / 60 * 86_400 * 70 / 1e9
    names = [*made["sites"]["site"], *made["pops"]["pop"], ""]
    size = [0.3 * total / sites] * sites + [0.03 * total] * 10 + [0.2 * total]
    price = [*rng.uniform(0.05, 0.2, sites), *rng.uniform(0.03, 0.08, 10), 0.02]
    made["stores"] = pd.DataFrame(
        {"place": names, "usd_per_gb_month": price, "capacity_gb": size, "link_mbps": np.nan}
    )
    return Analytics.from_tables(made)


def test_a_copy_does_not_reach_a_point_of_presence_in_another_region_where_a_rule_keeps_it() -> None:
    made = make_stored(laws=pd.DataFrame([("a", "", "", "c", "5 s")], columns=RULES))
    made["archives"]["reads_per_month"] = 0.0
    made["stores"] = made["stores"].assign(capacity_gb=[np.nan, np.nan, np.nan, 0.0])
    made["central"] = pd.DataFrame({"region": ["c"]})
    assert run_storage(made).plan.archived["at"].tolist() == ["pop", "pop"]
    made["pops"]["region"] = "c"
    plan = run_storage(made).plan
    assert plan.archived["at"].tolist() == ["site", "site"]
    moved = replace(plan, archived=plan.archived.assign(at="pop", usd_per_month=4.32))
    limits = check(Analytics.from_tables(made), moved).frame["limit"].tolist()
    assert limits == ["storage_rules", "storage_rules"]
