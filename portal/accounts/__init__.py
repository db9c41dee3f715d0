"""Accounts of people and programs: authentication, permissions and the audit log.

A portal without accounts is open: everyone has every permission. The first account, an owner,
closes it permanently, because the last owner can't be removed. `permissions` has the rules,
`people` the accounts, `sessions` and `tokens` the credentials of requests, `identities` and `oidc`
single sign-on, `audit` the audit log. Limits: no mail is sent, so people pass on one-time links
to choose passwords. Begin reading at `permissions`.
"""
