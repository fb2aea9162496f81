"""Rows that live in parts elsewhere, on a cluster or in other processes.

A part is a piece of a table with whole rows. It lives in a place, a process that answers requests
about the parts it holds; the process of the user holds no features. An engine, such as Dask's or
Spark's, knows the places, carries requests and replies, and reloads the parts of a lost place.
"""
