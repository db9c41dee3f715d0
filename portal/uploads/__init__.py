"""Uploads in parts: start, get, sign a part, complete, discard; and the quotas of accounts.

Begin with `service`, which has these functions and their SQL. `storage.objects` calculates sizes of
parts.
"""
