"""What Mukerjee 2018, chapter 3, states of its tables and figures: the targets that put ours beside it.

The thesis' traces are not public. The market of `generate.world` was calibrated to Table 3.3, so its
rows say so, and so do those that are about the same values; all others are what that same market
gives, untouched.
"""

from __future__ import annotations

from typing import Final

from planner.published import Target
from planner_models.brokering import comparisons, inspections

_T33: Final = tuple(
    f"brok_t33_{name}_{column}"
    for name in comparisons.DESIGNS.values()
    for column in comparisons.COLUMNS
    if not (name == "brokered" and column in comparisons.SCALED)
)
_T32: Final = tuple(
    f"brok_t32_{name}_{what}"
    for name in (
        *(name for name in comparisons.DESIGNS.values() if "multicluster_" not in name),
        "multicluster",
        "transactions",
    )
    if name != "omniscient"
    for what in ("share", "matching", "announce", "co", "dcp")
)

TARGETS: Final = (
    Target(
        name="table_3_1",
        place="Mukerjee 2018, Table 3.1",
        about="how often a CDN has more clusters of similar score",
        rows=(*(f"brok_t31_alt{k}" for k in range(1, 5)), "brok_s333_clusters", "brok_s333_alts"),
        find=inspections.table_3_1,
        orders=(tuple(f"brok_t31_alt{k}" for k in range(1, 5)),),
    ),
    Target(
        name="table_3_2",
        place="Mukerjee 2018, Table 3.2",
        about="what each design shares, matches and announces, and which requirements that meets",
        rows=(
            *_T32,
            "brok_t32_marketplace_tp",
            "brok_t32_transactions_tp",
            "brok_t32_transactions_runtime",
        ),
        find=inspections.table_3_2,
    ),
    Target(
        name="overbooking",
        place="Mukerjee 2018, 3.4.2",
        about="two brokers that fill the same cluster",
        rows=("brok_overbook_capacity", "brok_overbook_load"),
        find=inspections.overbooking,
        tolerance=1e-6,
    ),
    Target(
        name="table_3_3",
        place="Mukerjee 2018, Table 3.3",
        about="the designs compared by cost, score, distance, load and congestion",
        rows=(*_T33, "brok_s35_mc_cost", "brok_s35_dp", "brok_s35_market", "brok_s35_omni"),
        find=comparisons.table_3_3,
        orders=tuple(
            tuple(
                f"brok_t33_{name}_{column}"
                for name in comparisons.DESIGNS.values()
                if f"brok_t33_{name}_{column}" in _T33
            )
            for column in comparisons.COLUMNS
        ),
        calibrated=frozenset((*_T33, "brok_s35_mc_cost", "brok_s35_dp", "brok_s35_market", "brok_s35_omni")),
    ),
    Target(
        name="figure_3_4",
        place="Mukerjee 2018, Fig. 3.4",
        about="cost of delivery by country",
        rows=("brok_f34_disparity",),
        find=inspections.figure_3_4,
        calibrated=frozenset({"brok_f34_disparity"}),
        lost=("costs of the 20 countries",),
    ),
    Target(
        name="figure_3_5",
        place="Mukerjee 2018, Fig. 3.5",
        about="what a broker moves between CDNs",
        rows=("brok_f35_avg", "brok_f35_low", "brok_f35_high"),
        find=inspections.figure_3_5,
        orders=(("brok_f35_avg", "brok_f35_low", "brok_f35_high"),),
        lost=("the series over time",),
    ),
    Target(
        name="figure_3_6",
        place="Mukerjee 2018, Fig. 3.6",
        about="use of CDNs by size of city",
        rows=("brok_f36_a", "brok_f36_bc"),
        find=inspections.figure_3_6,
        lost=("use by requests per city", "slopes of the best-fit lines"),
    ),
    Target(
        name="figure_3_8",
        place="Mukerjee 2018, Fig. 3.8",
        about="use of CDNs by country; its countries are numbers in random order",
        rows=(),
        find=inspections.figure_3_8,
        lost=("use of CDNs A, B and C in each country", "names of the countries"),
    ),
    Target(
        name="figure_3_10",
        place="Mukerjee 2018, Fig. 3.10",
        about="the broker's integer program",
        rows=("brok_ilp_objective", "brok_ilp_binary", "brok_ilp_one", "brok_ilp_capacity"),
        find=inspections.figure_3_10,
    ),
    Target(
        name="messages",
        place="Mukerjee 2018, 3.6.1",
        about="formats of Share, Announce and Accept",
        rows=("brok_share_format", "brok_bid_format", "brok_accept_format"),
        find=inspections.formats,
    ),
    Target(
        name="figures_3_11_to_3_13",
        place="Mukerjee 2018, Fig. 3.11 to 3.13",
        about="which CDNs profit, by flat prices and by bids",
        rows=("brok_f311_result", "brok_f312_cdn12", "brok_f312_cdn1", "brok_f312_cdn11", "brok_f313_vdx"),
        find=inspections.figures_3_11_to_3_13,
        lost=("price over cost of each CDN", "traffic of each CDN", "profit of each CDN"),
    ),
    Target(
        name="profits",
        place="Mukerjee 2018, 3.7.1",
        about="the formulas of profit",
        rows=("brok_eval_profit_brokered", "brok_eval_profit_vdx", "brok_eval_markup"),
        find=inspections.formulas,
        tolerance=1e-6,
    ),
    Target(
        name="figures_3_14_to_3_16",
        place="Mukerjee 2018, Fig. 3.14 to 3.16",
        about="in which countries CDNs profit, and which bids avoid",
        rows=("brok_f314_good", "brok_f314_bad", "brok_f315_avoid", "brok_f315_brokered", "brok_f316_bad"),
        find=inspections.figures_3_14_to_3_16,
        lost=("price over cost of each country", "traffic of each country", "profit in each country"),
    ),
    Target(
        name="figure_3_17",
        place="Mukerjee 2018, Fig. 3.17",
        about="200 CDNs of a single cluster",
        rows=("brok_city_cdns", "brok_f317_city", "brok_f317_none"),
        find=inspections.figure_3_17,
        calibrated=frozenset({"brok_city_cdns"}),
        lost=("profit of each CDN",),
    ),
    Target(
        name="figure_3_18",
        place="Mukerjee 2018, Fig. 3.18",
        about="cost against distance as the cost weight varies",
        rows=(
            "brok_f318_cost",
            "brok_f318_distance",
            "brok_f318_knee_cost",
            "brok_f318_knee_distance",
            "brok_f318_claim",
        ),
        find=comparisons.figure_3_18,
        orders=(("brok_f318_cost", "brok_f318_distance", "brok_f318_knee_cost", "brok_f318_knee_distance"),),
        calibrated=frozenset({"brok_f318_knee_cost", "brok_f318_knee_distance"}),
        lost=("the curve and its weights",),
    ),
    Target(
        name="figure_3_19",
        place="Mukerjee 2018, Fig. 3.19",
        about="cost and score by the number of bids",
        rows=("brok_f319_best_bid", "brok_f319_claim"),
        find=comparisons.figure_3_19,
        lost=("the curves",),
    ),
    Target(
        name="savings",
        place="Mukerjee 2018, 3.8",
        about="what bids save",
        rows=("brok_s38_saving", "brok_s38_akamai", "brok_s38_akamai_calc"),
        find=comparisons.saving,
        calibrated=frozenset({"brok_s38_saving", "brok_s38_akamai", "brok_s38_akamai_calc"}),
    ),
)
