"""Failed tries of passwords, which slow down further ones.

After some failures within an hour the next try must wait one second, and twice as long after each
failure, up to a minute. A try that comes too early does not count, so nobody is locked out
permanently. Failures of an account don't slow down addresses at which it is signed in, so an
attacker elsewhere can't keep its owner out.
"""

from math import ceil

from portal.database.connection import execute, fetch_rows, transaction
from portal.errors import TooManyTries

FREE_TRIES_OF_ADDRESS = 20
MAX_WAIT_S = 60

# Concurrent tries wait for each other, so that each one counts the others.
LOCK_TRIES = "LOCK TABLE sign_in_failures IN SHARE ROW EXCLUSIVE MODE"
# Time of the clock, not of the transaction, which may have waited for the lock.
RECORD_TRY = "INSERT INTO sign_in_failures (email, address, at) VALUES (%s, %s, clock_timestamp())"
# Failed tries for the account or video, unless the account is signed in at the address; and from
# the address.
EARLIER_TRIES = """
WITH tried AS (SELECT %s AS email, %s AS address),
known AS (
  SELECT EXISTS (
    SELECT FROM tried JOIN accounts USING (email)
    JOIN sessions ON sessions.account_id = accounts.id AND sessions.address = tried.address
  ) AS is_known
)
SELECT count(*) FILTER (WHERE earlier.email = tried.email AND NOT is_known) AS of_name,
       count(*) FILTER (WHERE earlier.address = tried.address) AS of_address,
       extract(epoch FROM clock_timestamp() - max(at))::float8 AS last_s
FROM known, tried JOIN sign_in_failures earlier
  ON earlier.email = tried.email OR earlier.address = tried.address
WHERE at > now() - interval '1 hour'
"""
FORGET_TRIES = "DELETE FROM sign_in_failures WHERE email = %s AND address = %s"


async def begin(name: str, address: str, *, free: int) -> None:
    """Record a try as failed, before its password is compared. Call `forget` if that is right.

    `name` is the e-mail address of an account, or the kind and id of something else. The failures
    of the last hour for the name, from any address, and those from the IP address count: after
    `free` or `FREE_TRIES_OF_ADDRESS` of them the next try has to wait. Raises `TooManyTries` with
    the time to wait, and doesn't record the try, if it comes too early.
    """
    async with transaction():
        await execute(LOCK_TRIES)
        [earlier] = await fetch_rows(EARLIER_TRIES, name, address)
        surplus = max(earlier["of_name"] - free, earlier["of_address"] - FREE_TRIES_OF_ADDRESS)
        if surplus >= 0:
            # The exponent is limited to keep the number small: the wait has reached its maximum.
            wait_s = min(MAX_WAIT_S, 2 ** min(surplus, 10)) - earlier["last_s"]
            if wait_s > 0:
                raise TooManyTries(ceil(wait_s))
        await execute(RECORD_TRY, name, address)


async def forget(name: str, address: str) -> None:
    """Delete the failed tries for a name from an IP address: they were typing errors."""
    await execute(FORGET_TRIES, name, address)
