"""The cookie of a visitor: set once, of a fixed form, and no secret of it in files."""

from __future__ import annotations

import pytest

from planner_dashboard import visitors


def test_a_new_visitor_gets_a_cookie_that_scripts_and_other_sites_cannot_use() -> None:
    cookie = visitors.cookie_for("theme=dark")
    assert cookie is not None
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    name, _, value = cookie.partition(";")[0].partition("=")
    assert visitors.visitor_of({name: value}) == value
    assert visitors.cookie_for(f"theme=dark; {name}={value}") is None
    assert visitors.cookie_for("") != cookie


@pytest.mark.parametrize("value", ["", "abc", "../" * 12, "g" * 32, "A" * 32, "0" * 33])
def test_a_cookie_of_another_form_names_no_visitor(value: str) -> None:
    assert visitors.visitor_of({visitors.COOKIE: value}) == ""
    assert visitors.cookie_for(f"{visitors.COOKIE}={value}") is not None


def test_a_mark_does_not_have_the_cookie() -> None:
    assert "0" * 32 not in visitors.owner_mark("0" * 32)
    assert visitors.owner_mark("0" * 32) != visitors.owner_mark("1" * 32)
