"""Single sign-on by OpenID Connect: a provider says who someone is, in place of a password.

The authorization code flow of OpenID Connect Core 1.0, with PKCE (RFC 7636), state and nonce.
`sign_ons` keeps what is under way, `provider` asks the provider, `id_tokens` checks what it has
signed, `claims` reads who that is, and `identities` finds or makes the account. Limits: one
provider; signing out here does not sign out there. Begin with `identities`.
"""
