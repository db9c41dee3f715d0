"""Logs, metrics and traces. Knows no route and no table.

Begin with `logs`; `spans` is what traced code calls, and does nothing unless `tracing` was started.
"""
