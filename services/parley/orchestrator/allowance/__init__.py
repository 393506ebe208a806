"""Limits of a tenant: counted over all replicas. A refusal says which limit was reached and when to try again.

Owns the counts and the limits. Knows the log that it counts, the index of debates and the runtime.
"""
