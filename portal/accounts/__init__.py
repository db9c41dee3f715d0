"""People and programs: who they are, how they prove it, and what they may do.

A portal without accounts is open: everyone may do everything. The first account, an owner, closes
it for good, since the last owner can't be removed. `permissions` has the rules, `people` the
accounts, `sessions` and `tokens` how a request is known to be someone's, `identities` and `oidc`
single sign-on, `audit` who did what. Limits: no mail is sent, so passwords are chosen by one-time
links that people hand on. Begin with `permissions`.
"""
