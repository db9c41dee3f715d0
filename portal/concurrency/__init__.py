"""Policies for many callers of one dependency: circuit breaker, retry, single-flight.

Knows no database, no storage and no HTTP.
"""
