"""Nouns that searches of all systems share: deadlines, judged decisions, tolerances, subgradient ascent."""
