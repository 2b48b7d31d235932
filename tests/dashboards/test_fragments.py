"""Parts of a page that run again: the browser may get their messages after those of the page behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.testing.v1 import AppTest

import planner_dashboard
from planner_dashboard import fragments
from tests.dashboards.test_app import page, wait_for_answer

SOURCES = Path(planner_dashboard.__file__).parent

pytestmark = pytest.mark.usefixtures("main_module")


@pytest.fixture
def messages() -> Iterator[list[Any]]:
    """Yield the messages that scripts of this process send to their pages."""
    sent: list[Any] = []
    ForwardMsgQueue.on_before_enqueue_msg(sent.append)
    yield sent
    ForwardMsgQueue.on_before_enqueue_msg(None)


def require_order(messages: list[Any]) -> None:
    """Check that each element is placed in a block that is there, behind the elements before it.

    Messages of fragments are left out, as streamlit does when a fragment runs again before they are sent.
    """
    sizes: dict[tuple[int, ...], int] = {(0,): 0, (1,): 0, (2,): 0, (3,): 0}
    for message in messages:
        if message.WhichOneof("type") == "new_session":
            sizes = {(0,): 0, (1,): 0, (2,): 0, (3,): 0}
        if message.WhichOneof("type") != "delta" or message.delta.fragment_id:
            continue
        *parent, index = message.metadata.delta_path
        block = tuple(parent)
        assert block in sizes, f"{block} is no block of the page"
        assert index <= sizes[block], f"place {index} of {block}, which has {sizes[block]} elements"
        sizes[block] = max(sizes[block], index + 1)
        if message.delta.WhichOneof("type") == "add_block":
            sizes.setdefault((*block, index), 0)


def show_part_and_text() -> None:
    import streamlit as st

    from planner_dashboard import fragments

    fragments.show_repeatedly(lambda: st.markdown("part"), every_s=0.1)
    st.markdown("behind it")


def show_bare_part_and_text() -> None:
    import streamlit as st

    st.fragment(lambda: st.markdown("part"), run_every=0.1)()
    st.markdown("behind it")


def test_no_element_of_a_page_waits_for_the_messages_of_a_part(messages: list[Any]) -> None:
    app = AppTest.from_function(show_part_and_text).run()
    assert [item.value for item in app.markdown] == ["part", "behind it"]
    assert any(message.delta.fragment_id for message in messages)
    require_order(messages)


def test_an_element_behind_a_bare_fragment_waits_for_its_messages(messages: list[Any]) -> None:
    """Streamlit's own fragments need the container: this fails where a later version needs it no more."""
    AppTest.from_function(show_bare_part_and_text).run()
    with pytest.raises(AssertionError, match="place 1 of"):
        require_order(messages)


def test_pages_use_no_bare_fragment() -> None:
    bare = [
        path.name
        for path in SOURCES.rglob("*.py")
        if re.search(r"\bst\.(fragment|dialog)\b", path.read_text()) and path != Path(fragments.__file__)
    ]
    assert not bare


@pytest.mark.slow
@pytest.mark.usefixtures("one_worker")
def test_the_first_page_shows_its_outline_before_the_messages_of_its_progress(messages: list[Any]) -> None:
    app = page()
    assert "job answer" in app.session_state
    assert "planner-skeleton" in " ".join(str(item.proto.body) for item in app.get("html"))
    require_order(messages)
    wait_for_answer(app)
    require_order(messages)
