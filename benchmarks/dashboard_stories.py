"""Ten stories in the dashboard, played in Chromium: by tests, and to draw the documentation's pictures.

1. A link of a national backbone fails, and upgrades are chosen under a budget.
2. A CDN of a broker raises its price.
3. Live video is short of capacity: what is shed, and what a larger source brings back.
4. A reflector of live video fails in a simulation of two designs.
5. Capacity is bought for a backbone that grows, then within a smaller budget.
6. A node of a shared store fails.
7. A network changes its rules at once, or in rounds.
8. Traffic under contracts with CDNs grows.
9. The cache of a virtual switch is limited.
10. A cluster of a CDN fails, whose clients the CDN or CDN and ISP together move.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from benchmarks.browser import (
    act,
    choose,
    press,
    select_element,
    solve_address,
    verdict,
    wait_for_answer,
    wait_for_script,
)

Report = Callable[[str], None]
"""Called with the name of each step when the page shows it."""


def play_backbone(page: Any, url: str, report: Report) -> None:
    """Fail a link of germany50, find the upgrades that repair it, and buy within a budget."""
    from playwright.sync_api import expect

    page.goto(url)
    wait_for_answer(page)
    assert "240.7 of 240.7 Gbit/s" in verdict(page)
    report("backbone 1 delivered")
    select_element(page, "Koblenz – Koeln")
    page.get_by_text("Demands with the largest load").wait_for()
    report("backbone 2 link")
    act(page, "Fail")
    says = verdict(page)
    assert says.startswith("With Koblenz – Koeln failed"), says
    assert "It sheds" in says, says
    page.get_by_text("What it carried before").wait_for()  # the panel of the failed link
    press(page, "Close", exact=True)
    expect(page.get_by_role("heading", name="Koblenz – Koeln", exact=True)).to_have_count(0)
    expect(page.get_by_role("combobox", name="Find")).to_have_value("")
    report("backbone 3 failed")
    press(page, "Find upgrades")
    page.get_by_role("button", name="Apply the list").wait_for()
    report("backbone 4 upgrades")
    budget = page.get_by_role("slider", name="Number of upgrades").first
    budget.focus()
    page.keyboard.press("ArrowLeft")
    wait_for_script(page)
    report("backbone 5 budget")
    address = page.url
    press(page, "Apply what this budget buys")
    page.wait_for_function("address => location.href != address", arg=address)
    wait_for_answer(page)
    assert verdict(page) != says
    report("backbone 6 bought")


def play_market(page: Any, url: str, report: Report) -> None:
    """Raise the price of a broker's CDN, and compare with the plan before."""
    page.goto(f"{url}/?{urlencode({'scenario': 'brokering/own_data'})}")
    solve_address(page)
    wait_for_answer(page)
    before = verdict(page)
    report("market 1 served")
    select_element(page, "Acme (CDN)")
    report("market 2 cdn")
    act(page, "Raise its price by 20%")
    assert verdict(page) != before
    report("market 3 price")
    _compare_with_before(page)
    report("market 4 changed")


def play_live_video(page: Any, url: str, report: Report) -> None:
    """Take most of the capacity away, see which clients are not served, and enlarge a source."""
    page.goto(f"{url}/?{urlencode({'scenario': 'livevideo/session_window', 'designs': 'vdn,cdn'})}")
    solve_address(page)
    wait_for_answer(page)
    report("live 1 trees")
    scarce = {
        "scenario": "livevideo/session_window",
        "designs": "vdn,cdn",
        "set": "problem.capacity_scale=0.3",
    }
    page.goto(f"{url}/?{urlencode(scarce)}")
    solve_address(page)
    wait_for_answer(page)
    says = verdict(page)
    assert "cannot serve 6 clients" in says, says
    report("live 2 overload")
    select_element(page, "S1 (cluster)")
    report("live 3 source")
    act(page, "Double the capacity")
    assert "cannot serve 4 clients" in verdict(page), verdict(page)
    report("live 4 larger")
    _compare_with_before(page)
    report("live 5 changed")


def play_simulation(page: Any, url: str, report: Report) -> None:
    """Simulate two designs in which a reflector fails, and stop while it is down."""
    page.goto(f"{url}/through_time?{urlencode({'scenario': 'livevideo/testbed_failure'})}")
    page.get_by_role("button", name="Run").wait_for()
    report("simulation 1 settings")
    press(page, "Run")
    page.get_by_role("button", name="Play").nth(1).wait_for()
    wait_for_script(page)
    report("simulation 2 verdict")
    page.get_by_role("slider", name="Moment").first.focus()
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    page.get_by_text("24 s", exact=True).first.wait_for()
    report("simulation 3 failed")


def play_purchases(page: Any, url: str, report: Report) -> None:
    """Show the purchases for a growing backbone and the gain of each; plan within a budget."""
    page.goto(f"{url}/?{urlencode({'scenario': 'capacity/backbone', 'designs': 'optimum'})}")
    solve_address(page)
    wait_for_answer(page)
    before = verdict(page)
    assert "840 of 840 Gbit/s" in before, before
    report("purchases 1 bought")
    press(page, "Show purchases and budgets")
    page.get_by_text("What a budget reaches", exact=True).wait_for()
    wait_for_script(page)
    report("purchases 2 steps")
    budget = page.get_by_role("slider", name="Budget").first
    budget.focus()
    page.keyboard.press("ArrowLeft")
    wait_for_script(page)
    budget.scroll_into_view_if_needed()
    report("purchases 3 budget")
    address = page.url
    press(page, "Plan with this budget")
    page.wait_for_function("address => location.href != address", arg=address)
    wait_for_answer(page)
    assert "within the budget" in verdict(page)
    report("purchases 4 within")


def _ask(page: Any, url: str, scenario: str, designs: str, **changes: str) -> str:
    """Ask a question by its address, and return the verdict."""
    page.goto(f"{url}/?{urlencode({'scenario': scenario, 'designs': designs, **changes})}")
    solve_address(page)
    wait_for_answer(page)
    return verdict(page)


def play_shares(page: Any, url: str, report: Report) -> None:
    """Fail a node of a shared store, and see which tenants get less."""
    before = _ask(page, url, "fairshare/own_data", "optimum,unmodified")
    assert "of its fair share" in before, before
    report("fairshare 1 shares")
    select_element(page, "s1 (node)")
    report("fairshare 2 node")
    act(page, "Fail")
    assert verdict(page) != before
    report("fairshare 3 failed")


def play_updates(page: Any, url: str, report: Report) -> None:
    """Change rules at once and in rounds, and enlarge the table of a switch."""
    says = _ask(page, url, "updates/diamond", "one_shot,ordered,two_phase")
    assert "keeps the guarantee of 2 of 2 classes" in says, says
    report("updates 1 rounds")
    select_element(page, "a (switch)")
    report("updates 2 switch")
    act(page, "Double the table")
    report("updates 3 larger table")


def _set_number(page: Any, field: str, value: str) -> None:
    """Type the value of a parameter into its number field, and wait for the new answer."""
    address = page.url
    number = page.get_by_role("spinbutton", name=field).last
    number.scroll_into_view_if_needed()
    number.fill(value)
    page.keyboard.press("Enter")
    page.wait_for_function("address => location.href != address", arg=address)
    wait_for_answer(page)


def _compare_with_before(page: Any) -> None:
    choose(page, "Compare with", "Compare with the plan before")
    page.get_by_text("What changed").wait_for()


def play_contracts(page: Any, url: str, report: Report) -> None:
    """Let the traffic of a week grow by half, and see by what the bill grows."""
    before = _ask(page, url, "contracts/own_data", "optimum,by_peak,commitments_first")
    assert "for a bill of" in before, before
    report("contracts 1 bill")
    press(page, "Scale 1")
    _set_number(page, "Scale", "1.5")
    page.keyboard.press("Escape")
    assert verdict(page) != before
    report("contracts 2 growth")
    _compare_with_before(page)
    report("contracts 3 changed")


def play_flow_tables(page: Any, url: str, report: Report) -> None:
    """Compare caches of a virtual switch, and limit the number of their entries."""
    before = _ask(page, url, "flowtables/own_data", "merged,all,microflows")
    assert "of CPU time for a new connection" in before, before
    report("flowtables 1 caches")
    choose(page, "Compare with", "Compare with Microflow cache")
    page.get_by_text("What changed").wait_for()
    report("flowtables 2 compared")
    choose(page, "Compare with", "Compare with nothing")
    wait_for_script(page)
    page.locator("summary").filter(has_text="Parameters").first.click()
    _set_number(page, "Flow limit", "4")
    page.locator(".planner-verdict").scroll_into_view_if_needed()
    assert verdict(page) != before
    report("flowtables 3 limited")


def play_cdn_routing(page: Any, url: str, report: Report) -> None:
    """Fail a cluster of a CDN, and compare its clients' delays with those before."""
    before = _ask(page, url, "cdnrouting/own_data", "joint,react_blind,separate")
    assert "delays traffic by" in before, before
    report("cdnrouting 1 delay")
    select_element(page, "east cluster (cluster)")
    report("cdnrouting 2 cluster")
    act(page, "Fail")
    assert verdict(page).startswith("With east cluster failed"), verdict(page)
    report("cdnrouting 3 failed")
    _compare_with_before(page)
    report("cdnrouting 4 changed")


STORIES = (
    play_backbone,
    play_market,
    play_live_video,
    play_simulation,
    play_purchases,
    play_shares,
    play_updates,
    play_contracts,
    play_flow_tables,
    play_cdn_routing,
)
