"""Tables of system `analytics`: sites, links, volumes of data, queries and their levels."""

from __future__ import annotations

from typing import Final

from planner.contract.table import Column, Table, choice, label, number

COARSEST, SUM, WORST = "coarsest", "sum", "worst"
COMBINE: Final = (COARSEST, SUM, WORST)
"""Ways to combine data of sites: at the coarsest level, each with a value of its own, or by the worst."""

INTERVAL, DIMENSION, SAMPLE, TOP_K, BUCKETS, SKETCH, FILTER, NO_DATA = (
    "interval",
    "dimension",
    "sample",
    "top_k",
    "buckets",
    "sketch",
    "filter",
    "none",
)
OPERATORS: Final = (INTERVAL, DIMENSION, SAMPLE, TOP_K, BUCKETS, SKETCH, FILTER, NO_DATA)
AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL = "at_least", "at_most", "equal", "not_equal"
COMPARISONS: Final = (AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL)
"""Comparisons of the value of a record with that of a filter: records for which they hold pass."""
MERGEABLE: Final = ("count", "max", "mean", "quantile", "distinct")
AGGREGATES: Final = (*MERGEABLE, "top_k")
"""Aggregates of cubes; lists of the largest cells (top_k) of several sites do not merge exactly."""

MOST_INTERVALS: Final = 100_000
MOST_MBPS: Final = 1e9
LEAST_MBPS: Final = 1e-6
MOST_BYTES: Final = 1e9
LEAST_BYTES: Final = 1e-9
MOST_RECORDS: Final = 1e12
MOST_USD: Final = 1e9
LEAST_USD: Final = 1e-9


def _mbps(about: str) -> Column:
    return number(about, at_least=0, at_most=MOST_MBPS, least=LEAST_MBPS)


def _usd_per_gb() -> Column:
    return number(
        "price of a gigabyte on its uplink, USD",
        at_least=0,
        at_most=MOST_USD,
        least=LEAST_USD,
        optional=True,
        default=0.0,
    )


def _region(about: str) -> Column:
    return label(about, optional=True, may_be_blank=True)


def _stored_bytes(unit: str) -> Column:
    return number(
        f"bytes that a site stores for each {unit} where table retention says for how long at least",
        at_least=0,
        at_most=MOST_BYTES,
        least=LEAST_BYTES,
        optional=True,
        default=0.0,
    )


SITES: Final = Table(
    name="sites",
    other_names=("datacenters", "locations"),
    about="a place where data is generated and stored, with an uplink to its point of presence",
    columns={
        "site": label("name of the site", other_names=("datacenter", "data center", "location", "name")),
        "pop": label("point of presence that its uplink ends at"),
        "uplink_mbps": _mbps("capacity of its uplink, where table bandwidth has none, Mbit/s"),
        "weight": number(
            "part of a query's value that its data has, relative to other sites, where values add up",
            more_than=0,
            at_most=1e6,
            least=1e-6,
            optional=True,
            default=1.0,
        ),
        "usd_per_gb": _usd_per_gb(),
        "region": _region("region, such as a jurisdiction, whose rules its data obeys; blank: none"),
        "storage_gb": number(
            "storage of data that is kept to be sent later, GB; blank: any",
            at_least=0,
            at_most=MOST_USD,
            least=1e-9,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("site",),
)
POPS: Final = Table(
    name="pops",
    about="a point of presence, with an uplink to the datacenter that answers queries",
    columns={
        "pop": label("name of the point of presence", other_names=("point of presence", "name")),
        "uplink_mbps": _mbps("capacity of its uplink, where table bandwidth has none, Mbit/s"),
        "merges": choice("whether it can merge the cells of its sites", ("yes", "no")),
        "usd_per_gb": _usd_per_gb(),
        "region": _region("region that it is in; blank: that of each of its sites"),
    },
    key=("pop",),
)
INTERVALS: Final = Table(
    name="intervals",
    about="a part of the time, for which each query has one answer",
    columns={
        "interval": number("number: 1, 2, 3 and so on", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "start_s": number("start of the interval, s", at_least=0, at_most=1e12),
        "length_s": number("length of the interval, s", more_than=0, at_most=1e9, least=1e-3),
    },
    key=("interval",),
)
BANDWIDTH: Final = Table(
    name="bandwidth",
    other_names=("uplinks", "link capacity"),
    about="capacity of an uplink in an interval; a link that is named has a row for each interval",
    columns={
        "link": label("site or point of presence of the uplink"),
        "interval": number("number of the interval", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "mbps": _mbps("capacity, Mbit/s"),
    },
    key=("link", "interval"),
    may_be_empty=True,
    compact=True,
)
CUBES: Final = Table(
    name="cubes",
    about="a data cube: records of all sites, aggregated in cells",
    columns={
        "cube": label("name of the cube"),
        "aggregate": choice("statistic of a cell", AGGREGATES),
        "stored_bytes_per_record": _stored_bytes("record"),
        "stored_bytes_per_cell": _stored_bytes("cell"),
    },
    key=("cube",),
)
VOLUME: Final = Table(
    name="volume",
    other_names=("data", "data volume", "volumes"),
    about="data that a site generates in an interval; no row: none",
    columns={
        "site": label("site"),
        "cube": label("cube"),
        "interval": number("number of the interval", at_least=1, at_most=MOST_INTERVALS, whole=True),
        "records": number("number of records", at_least=0, at_most=MOST_RECORDS, least=1e-6),
        "cells": number(
            "number of cells with at least a record", at_least=0, at_most=MOST_RECORDS, least=1e-6
        ),
    },
    key=("site", "cube", "interval"),
    compact=True,
)
QUERIES: Final = Table(
    name="queries",
    about="a query over the data of all sites that have its cube, with an answer in each interval unless "
    "table ad_hoc names it",
    columns={
        "query": label("name of the query"),
        "cube": label("cube that it reads"),
        "value_usd": number(
            "value of an answer for one interval at full quality, USD",
            at_least=0,
            at_most=MOST_USD,
            least=LEAST_USD,
        ),
        "combine": choice(
            "how data of sites combine: coarsest: the answer has the coarsest level of any site; sum: each "
            "site adds a value of its own; worst: the answer has the error of the worst site",
            COMBINE,
        ),
        "deadline_s": number(
            "time from the start of an interval after which its answer has no value, s",
            more_than=0,
            at_most=1e9,
            least=1e-3,
        ),
        "error_at_most": number(
            "largest error that is allowed; blank: any", at_least=0, optional=True, may_be_blank=True
        ),
    },
    key=("query",),
)
LEVELS: Final = Table(
    name="levels",
    about="a level of detail at which sites may send the data of a query; from the finest to the coarsest",
    columns={
        "query": label("query"),
        "level": label("name of the level, such as 5 s"),
        "operator": choice("what makes the data smaller; none: no data is sent", OPERATORS),
        "parameter": number(
            "of the operator: seconds of interval, number of buckets, part of sample, entries of top_k",
            at_least=0,
            at_most=1e12,
            optional=True,
            may_be_blank=True,
        ),
        "bytes_per_record": number(
            "bytes sent for each record", at_least=0, at_most=MOST_BYTES, least=LEAST_BYTES
        ),
        "bytes_per_cell": number(
            "bytes sent for each cell", at_least=0, at_most=MOST_BYTES, least=LEAST_BYTES
        ),
        "error": number("error of an answer at this level", at_least=0, at_most=1e9),
        "value_share": number("part of the query's value at this level", at_least=0, at_most=1),
        "proven_error": number(
            "bound on the error that holds for any data, where the error itself is measured on some; blank: "
            "none is known",
            at_least=0,
            at_most=1e9,
            optional=True,
            may_be_blank=True,
        ),
        "filter_column": label(
            "column of records that a filter compares, of any operator but none; blank: no filter",
            optional=True,
            may_be_blank=True,
        ),
        "keeps": choice(
            "comparison with filter_value that holds for the records that pass",
            COMPARISONS,
            optional=True,
            may_be_blank=True,
        ),
        "filter_value": label(
            "number, or text for equal and not_equal, that the column is compared with",
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("query", "level"),
)
PASSING: Final = Table(
    name="passing",
    about="shares of the data of a site that pass the filter of a level",
    columns={
        "query": label("query"),
        "level": label("level with a filter"),
        "site": label("site; blank: all sites without a row of their own", may_be_blank=True),
        "record_share": number("records that pass over all records", at_least=0, at_most=1, share=True),
        "cell_share": number(
            "cells with a record that passes over all cells", at_least=0, at_most=1, share=True
        ),
    },
    key=("query", "level", "site"),
    may_be_empty=True,
)
MERGING: Final = Table(
    name="merging",
    about="merging of cells at a point of presence; no row: merging saves nothing",
    columns={
        "pop": label("point of presence"),
        "query": label("query"),
        "level": label("level"),
        "merged_share": number(
            "bytes of the union of its sites' cells over the bytes that sites send; above 1: merging adds",
            more_than=0,
            at_most=1e3,
            least=1e-6,
        ),
    },
    key=("pop", "query", "level"),
    may_be_empty=True,
    compact=True,
)
POLICIES: Final = Table(
    name="policies",
    about="order in which a site makes a query coarser as bandwidth falls; no row: the order of its levels",
    columns={
        "query": label("query"),
        "step": number("number of the step: 1, 2, 3 and so on", at_least=1, at_most=1e4, whole=True),
        "level": label("level"),
        "until": number(
            "load of the site's uplink at the finest levels, over its capacity, up to which the step is "
            "used; blank: any",
            at_least=0,
            at_most=1e9,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("query", "step"),
    may_be_empty=True,
)
BACKFILL: Final = Table(
    name="backfill",
    about="a query whose answers may be improved by finer data that is sent later; no row: they may not",
    columns={
        "query": label("query"),
        "window_s": number("time after its interval in which data may be sent, s", more_than=0, at_most=1e9),
        "half_life_s": number(
            "time in which the value of an improvement halves, s", more_than=0, at_most=1e12
        ),
    },
    key=("query",),
    may_be_empty=True,
)

AD_HOC: Final = Table(
    name="ad_hoc",
    about="a query that is asked once, over data that sites have stored; no row: it has an answer in each "
    "interval",
    columns={
        "query": label("query"),
        "interval": number(
            "number of the interval in which it is asked", at_least=1, at_most=MOST_INTERVALS, whole=True
        ),
        "since": number(
            "number of the first interval whose data it reads; blank: that in which it is asked",
            at_least=1,
            at_most=MOST_INTERVALS,
            whole=True,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("query",),
    may_be_empty=True,
)
SHARES: Final = Table(
    name="shares",
    about="a query that is answered from the data of another one, which is sent once",
    columns={"query": label("query"), "uses": label("query whose data it uses, at levels of the same names")},
    key=("query",),
    may_be_empty=True,
)


def _exceptions(name: str, about: str) -> Table:
    return Table(
        name=name,
        about=about,
        columns={"site": label("site"), "query": label("query"), "level": label("level")},
        key=("site", "query", "level"),
        may_be_empty=True,
    )


PINNED: Final = _exceptions("pinned", "the level that a site must send for a query")
FORBIDDEN: Final = _exceptions("forbidden", "a level that a site must not send for a query")
CENTRAL: Final = Table(
    name="central",
    about="the datacenter that answers queries: one row; no table: it is in none of the regions",
    columns={"region": label("region that it is in", may_be_blank=True)},
    key=(),
)
LAWS: Final = Table(
    name="laws",
    about="what data of the sites of a region may leave it; each rule holds: the strictest one counts",
    columns={
        "region": label("region of sites"),
        "cube": label("cube of the queries; blank: any", may_be_blank=True),
        "query": label("query; blank: all queries of the cube", may_be_blank=True),
        "to": label("region that the data must not reach; blank: any other place", may_be_blank=True),
        "finest": label(
            "finest level that may leave: this one and those listed after it; blank: nothing may",
            may_be_blank=True,
        ),
    },
    key=("region", "cube", "query", "to"),
    may_be_empty=True,
)
RETENTION: Final = Table(
    name="retention",
    about="how long sites of a region keep data, from the end of its interval on",
    columns={
        "region": label("region of sites"),
        "cube": label("cube; blank: all cubes", may_be_blank=True),
        "at_most_h": number(
            "hours after which data is erased; blank: any",
            at_least=0,
            at_most=1e9,
            optional=True,
            may_be_blank=True,
        ),
        "at_least_h": number(
            "hours for which data must be stored; blank: none",
            at_least=0,
            at_most=1e9,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("region", "cube"),
    may_be_empty=True,
)
STORES: Final = Table(
    name="stores",
    about="storage of data for later queries at a site, a point of presence or the datacenter; no row: it "
    "stores none, and its uplink carries none of it",
    columns={
        "place": label("site or point of presence; blank: the datacenter", may_be_blank=True),
        "usd_per_gb_month": number(
            "price of storing a gigabyte for a month of 30 days, USD",
            at_least=0,
            at_most=MOST_USD,
            least=LEAST_USD,
        ),
        "capacity_gb": number(
            "data that it can store, GB; blank: any",
            at_least=0,
            at_most=1e12,
            least=1e-9,
            optional=True,
            may_be_blank=True,
        ),
        "link_mbps": number(
            "rate of its uplink that is set aside for storing and reading, Mbit/s; blank: any",
            at_least=0,
            at_most=MOST_MBPS,
            least=1e-9,
            optional=True,
            may_be_blank=True,
        ),
    },
    key=("place",),
    may_be_empty=True,
)
ARCHIVES: Final = Table(
    name="archives",
    about="a query whose data of each site is stored for later queries, at one place of table stores",
    columns={
        "query": label("query"),
        "keep_days": number("days for which data is stored", more_than=0, at_most=1e5, least=1e-6),
        "bytes_per_record": number(
            "bytes stored for each record", at_least=0, at_most=MOST_BYTES, least=LEAST_BYTES
        ),
        "bytes_per_cell": number(
            "bytes stored for each cell", at_least=0, at_most=MOST_BYTES, least=LEAST_BYTES
        ),
        "reads_per_month": number(
            "times a month that later queries read all that is stored", at_least=0, at_most=1e6, least=1e-9
        ),
        "read_level": label("level of the query at which stored data is read"),
        "value_usd": number(
            "value of a month of stored data of all sites, USD; a site has its share of the records",
            at_least=0,
            at_most=MOST_USD,
            least=LEAST_USD,
        ),
    },
    key=("query",),
    may_be_empty=True,
)
TABLES: Final = (
    SITES,
    POPS,
    INTERVALS,
    CUBES,
    VOLUME,
    QUERIES,
    LEVELS,
    PASSING,
    BANDWIDTH,
    MERGING,
    POLICIES,
    BACKFILL,
    AD_HOC,
    SHARES,
    PINNED,
    FORBIDDEN,
    CENTRAL,
    LAWS,
    RETENTION,
    STORES,
    ARCHIVES,
)
OPTIONAL_TABLES: Final = (
    "passing",
    "bandwidth",
    "merging",
    "policies",
    "backfill",
    "ad_hoc",
    "shares",
    "pinned",
    "forbidden",
    "central",
    "laws",
    "retention",
    "stores",
    "archives",
)
