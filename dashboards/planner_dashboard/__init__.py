"""The what-if dashboard: `planner dashboard`.

Worker processes run `planner`; pages submit questions to them and show plain data and charts. A long
solve therefore never blocks a page and can be cancelled.
"""
