"""The interactive page: a view over experiments while they run, each tab with a process of its
own.
"""
