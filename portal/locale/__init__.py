"""Texts for people, and their translations: gettext catalogues, one folder for each language."""
