"""What streams leave behind, for Python: see `rareclass.streams.log`."""
