"""Visitors: a cookie tells one browser from another, so that a private answer stays with who asked for it."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final

COOKIE: Final = "planner_visitor"
MAX_AGE_S: Final = 90 * 86_400
VALUE: Final = re.compile(r"[0-9a-f]{32}")


def visitor_of(cookies: Mapping[str, str]) -> str:
    """Return the visitor that the cookies of a request name; "" for none."""
    value = str(cookies.get(COOKIE, ""))
    return value if VALUE.fullmatch(value) else ""


def cookie_for(header: str) -> str | None:
    """Return the `Set-Cookie` of a new visitor, by the header `Cookie`; None for a visitor with one.

    The cookie says nothing of the visitor, scripts cannot read it, and other sites do not send it.
    """
    try:
        cookies = {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        cookies = {}
    if visitor_of(cookies):
        return None
    return f"{COOKIE}={secrets.token_hex(16)}; Path=/; Max-Age={MAX_AGE_S}; HttpOnly; SameSite=Lax"


def owner_mark(visitor: str) -> str:
    """Return the mark of a visitor in files, from which the cookie cannot be derived."""
    return hashlib.sha256(f"planner {visitor}".encode()).hexdigest()
