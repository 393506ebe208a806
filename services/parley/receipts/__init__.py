"""Receipts of debates: statements about what a debate came to, signed and verified, and the log as a file.

It knows what services share and the contract, so that the orchestrator, the edge and the command may use it.
"""
