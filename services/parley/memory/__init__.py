"""The memory of past debates, searched by the meaning of their texts.

It knows the stores, the runtime and the contract; the convergence service embeds its texts, over gRPC.
"""
