"""What a tenant may take: counted over all replicas, refused with the reason and the time after which it is allowed again.

Owns the counts and the limits; knows the log it counts, the index of debates and what the runtime offers.
"""
