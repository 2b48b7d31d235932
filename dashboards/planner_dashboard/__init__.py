"""The what-if dashboard: `planner dashboard`.

It decides nothing itself. What is asked goes to worker processes that call `planner`, so a long
solve never blocks a page and can be cancelled; what comes back is plain data and charts.
"""
