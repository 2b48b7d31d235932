"""Geo-replicated storage: replicas of groups of data, the protocol between them, and shards of a keyspace."""
