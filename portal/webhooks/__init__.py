"""Webhooks: events of videos, sent to addresses that asked for them (Standard Webhooks).

`endpoints` has the addresses, what they are sent and what they answered, `sending` how one is sent
and when again. The database makes deliveries and their jobs in the transaction of the event
(`database/functions/webhooks.sql`), so none is lost; begin there.
"""
