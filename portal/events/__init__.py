"""Events of videos and accounts, and guarded requests to addresses that people typed in.

A use case calls `log.note` in the transaction of its change; begin there. `records` has the shapes
of videos that events, webhooks and the API share.
"""
