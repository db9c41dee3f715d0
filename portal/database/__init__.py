"""PostgreSQL: the connection and its pool, the models, and the schema.

Begin with `models`. `connection` opens the database and its transactions, `pool` is the one place
that reaches into Tortoise's private parts. `schema` runs the migrations and creates the SQL
functions in `functions/*.sql`. The SQL of a feature stands with that feature.
"""
