"""Routing over lists of segments: prices and loads of lists, local search and programs over them."""
