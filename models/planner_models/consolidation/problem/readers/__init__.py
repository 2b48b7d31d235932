"""Readers of the files that tools of clusters and hypervisors write."""
