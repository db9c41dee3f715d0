"""Uploads in parts: start, get, sign a part, complete, discard.

Begin with `service`, which has the verbs; `rows` is its SQL, `parts` the arithmetic of parts.
"""
