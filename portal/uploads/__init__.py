"""Uploads in parts: start, get, sign a part, complete, discard; and what accounts may upload.

Begin with `service`, which has the verbs; `rows` is its SQL, `parts` the arithmetic of parts.
`quotas` says what an account may still publish and store; `quota_rows` is its SQL.
"""
