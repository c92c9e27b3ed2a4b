"""Histories of entities: what was known of them before each row, in compiled code and as a transformer."""
