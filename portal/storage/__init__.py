"""Object storage over S3. No other package speaks S3, and media bytes of uploads bypass this one.

Begin with `bucket` (`Storage`): single objects, multipart uploads, listings. `objects` has keys and
values, `calls` limits calls and translates their errors, `presigning` signs addresses.
"""
