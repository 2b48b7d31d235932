"""Multi-commodity flow as a library, which knows no system: programs over links and paths, and own solvers.

Its front is `problem.FlowProblem`, the network, demands and limits of routes that solvers read; systems pass
their own problems, which have these attributes.
"""
