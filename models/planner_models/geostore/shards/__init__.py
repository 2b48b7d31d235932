"""Shards: an ordered keyspace over the servers of a datacenter.

Eiger partitions the keyspace over logical servers, by consistent hashing or a directory, and leaves open how
(Lloyd et al. 2013, section 3). Yesquel keeps ordered nodes of a tree on servers, and moves data between them
by transactions (Aguilera et al. 2015, section 3); it prints no numbers.
"""
