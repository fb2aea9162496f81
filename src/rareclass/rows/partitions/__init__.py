"""Rows that live in parts elsewhere: what an engine, such as a cluster, has to do for them.

A part is a piece of a table with whole rows. Each lives in a `Place`, a process that answers
requests about the parts it holds; the process of the user holds none of the features. An engine
knows the places, brings requests there and replies back, and brings a part to another place when
one is lost.
"""
