"""What happened: one table that all who tell of it read, and guarded requests to who is told.

A use case calls `log.note` inside the transaction of its change; begin there.
"""
