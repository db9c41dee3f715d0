"""PostgreSQL: the connection and its pool, the models, the migrations, and what many queries share.

Begin with `models`; `connection` opens the database and its transactions, `pool` is the one place
that reaches into Tortoise's private parts. The SQL of a feature stands with that feature.
"""
