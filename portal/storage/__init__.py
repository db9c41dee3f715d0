"""Object storage over S3; nothing else speaks S3. Media bytes of uploads never pass through here.

Begin with `bucket` (`Storage`): single objects. `multipart` has uploads in parts, `listing` goes
through what storage holds, `objects` are the values that these give, `keys` where things lie.
`calls` limits calls and translates their errors; `presigning` signs addresses.
"""
