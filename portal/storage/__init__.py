"""Object storage over S3; nothing else speaks S3. Media bytes of uploads never pass through here.

Begin with `bucket` (`Storage`): single objects, uploads in parts, listings. `objects` has the keys
and values, `calls` limits calls and translates their errors, `presigning` signs addresses.
"""
