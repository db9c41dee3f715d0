"""PostgreSQL: the connection and its pool, the models, and the schema.

Begin with `models`. `connection` opens the database and its transactions, `pool` checks pooled
connections. `schema` runs the migrations and creates the SQL functions in `functions/*.sql`. The
SQL of a feature is in that feature's package.
"""
