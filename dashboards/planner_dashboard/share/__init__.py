"""Sharing an answer: documents, pictures, files, its address, and results that are kept in a store."""

from planner_dashboard.share.panel import show_share

__all__ = ["show_share"]
