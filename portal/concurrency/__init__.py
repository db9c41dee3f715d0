"""What keeps many callers from doing, or waiting for, the same thing at once.

`circuit_breaker` answers for a part that is known to be away; `single_flight` does once what many
ask for. Knows no database, no storage and no HTTP.
"""
