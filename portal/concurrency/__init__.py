"""Policies for many callers of one dependency: circuit breaker, retry, single-flight, values that
are kept for a while, and the bare errors of a task group.

Knows no database, no storage and no HTTP.
"""
