"""The `portal` command."""
