"""Kernels, the rows that carry them, and products with them."""
