"""People and programs: who they are, how they prove it, and what they may do.

A portal without accounts is open: everyone may do everything. The first account, an owner, closes
it for good, since the last owner can't be removed. `permissions` has the rules, `people` the
accounts, `signing_in`, `sessions` and `api_tokens` how a request is known to be someone's, `audit`
who did what. Limits: no mail is sent, so passwords are chosen by one-time links that people hand
on. Begin with `permissions`.
"""
