"""Uploads in parts: start, get, sign a part, complete, discard; and what accounts may upload.

Begin with `service`, which has the verbs and their SQL; `storage.objects` has the arithmetic of
parts. `quotas` says what an account may still publish and store.
"""
