"""Logs, metrics and traces. Knows no route and no table. Begin with `logs`."""
