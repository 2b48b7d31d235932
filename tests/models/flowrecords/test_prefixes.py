"""Longest matches by intervals: equal to a plain search, and tables that are refused."""

from __future__ import annotations

import ipaddress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.flowrecords.prefixes import NO_NODE, make_prefix_map
from planner_models.flowrecords.records import MAPPED_LOW, address_halves, address_text
from tests.models.flowrecords.exports import find_node


def networks() -> st.SearchStrategy[str]:
    v4 = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32))
    v6 = st.tuples(st.integers(0, 2**128 - 1), st.integers(0, 128))
    return st.one_of(
        v4.map(lambda pair: str(ipaddress.ip_network(pair, strict=False))),
        v6.map(lambda pair: str(ipaddress.ip_network(pair, strict=False))),
        st.sampled_from(["0.0.0.0/0", "::/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "255.0.0.0/8"]),
    )


@given(st.dictionaries(networks(), st.sampled_from("abc"), min_size=1, max_size=12), st.data())
def test_the_longest_prefix_is_that_of_a_plain_search(prefixes: dict[str, str], data: st.DataObject) -> None:
    table = pd.DataFrame({"prefix": list(prefixes), "node": list(prefixes.values())})
    prefix_map = make_prefix_map(table)
    ends = []
    for text in prefixes:
        network = ipaddress.ip_network(text)
        first, last = int(network.network_address), int(network.broadcast_address)
        limit = 2**32 if network.version == 4 else 2**128
        kind = ipaddress.IPv4Address if network.version == 4 else ipaddress.IPv6Address
        numbers = {
            first,
            last,
            max(first - 1, 0),
            min(last + 1, limit - 1),
            data.draw(st.integers(first, last)),
        }
        ends += [str(kind(number)) for number in sorted(numbers)]
    # the IPv4 addresses among IPv6 addresses are IPv4 addresses here
    ends = [text for text in ends if ":" not in text or ipaddress.IPv6Address(text).ipv4_mapped is None]
    values = [int(ipaddress.ip_address(text)) + (0 if ":" in text else MAPPED_LOW) for text in ends]
    halves = np.array([address_halves(value) for value in values], dtype=np.int64).reshape(-1, 2)
    nodes = prefix_map.find(halves[:, 0], halves[:, 1])
    names = [None if node == NO_NODE else prefix_map.nodes[node] for node in nodes.tolist()]
    assert names == [find_node(text, prefixes) for text in ends]
    assert [address_text(high, low) for high, low in halves.tolist()] == ends


def test_the_most_general_prefix_counts_where_it_is_asked_for() -> None:
    table = pd.DataFrame({"prefix": ["10.1.2.0/24", "10.0.0.0/8", "10.1.0.0/16"], "node": ["a", "b", "c"]})
    halves = np.array([address_halves(MAPPED_LOW + int(ipaddress.IPv4Address("10.1.2.3")))])
    for match, node in (("longest", "a"), ("most_general", "b")):
        prefix_map = make_prefix_map(table, match=match)  # type: ignore[arg-type]
        assert prefix_map.nodes[prefix_map.find(halves[:, 0], halves[:, 1])[0]] == node


@pytest.mark.parametrize(
    ("prefixes", "nodes", "message"),
    [
        (["10.1.0.0/16x"], ["a"], "prefix is '10.1.0.0/16x', must be an IPv4 or IPv6 prefix, such as"),
        (["10.1.0.1/16"], ["a"], "prefix is '10.1.0.1/16', has bits behind its length; 10.1.0.0/16 has none"),
        (["10.1.0.0/16", "10.1.0.0/16"], ["a", "b"], "prefix 10.1.0.0/16 is of node 'b', and of 'a' in "),
        (["10.1.0.0/16"], ["aa"], "node 'aa' is no node of the network"),
        (["10.1.0.0/33"], ["a"], "prefix is '10.1.0.0/33', must be an IPv4 or IPv6 prefix"),
        (["::ffff:1.2.3.4.5/99"], ["a"], "must be an IPv4 or IPv6 prefix"),
    ],
)
def test_tables_of_prefixes_that_are_refused(prefixes: list[str], nodes: list[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        make_prefix_map(pd.DataFrame({"prefix": prefixes, "node": nodes}), names=["a", "b"])
    assert message in str(error.value)
