"""Look into one untrusted source: `python -I -m portal.transcoding.probing`, its own process.

Imports nothing of the portal's but this package. `probe` starts it, confined,
and gives its answers their meaning.
"""
