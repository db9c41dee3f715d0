"""People: signing in, their own account, and accounts that admins manage.

The rules are in `portal.accounts`.
"""
