"""How agents have done, and what their votes weigh.

It knows the stores, what services share and the contract, and no other service.
"""
