"""Migrations of the schema; `database.schema` runs them."""
