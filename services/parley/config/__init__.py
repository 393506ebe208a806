"""The file in which a person says who debates, on which models, and how.

It knows the contract and what services share, and no service.
"""
