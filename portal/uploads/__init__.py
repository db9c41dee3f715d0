"""Uploads in parts: start, look, sign a part, complete, discard.

Begin with `service`, which has the verbs; `rows` is its SQL, `parts` the arithmetic of parts.
"""
