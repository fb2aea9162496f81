"""Rows that keep arriving: read where they are written, encoded, and learned from one by one."""
