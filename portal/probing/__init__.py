"""Look into one untrusted source: `python -I -m portal.probing`, a process of its own.

Imports nothing of the portal's but this package. `portal.transcoding.probe` starts it, confined,
and gives its answers their meaning.
"""
