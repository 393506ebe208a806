"""What past debates found, recalled by meaning.

It knows the stores, what services share and the contract; it has texts embedded by convergence, over gRPC.
"""
