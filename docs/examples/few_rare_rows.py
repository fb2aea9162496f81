"""
Twelve rare rows
================

A kernel machine whose functions sit on the rare rows, and on some of the others.
"""

# %%
print("hello")
