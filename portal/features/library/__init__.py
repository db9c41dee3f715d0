"""Library: the pages that list and search videos, and actions on several of them."""
