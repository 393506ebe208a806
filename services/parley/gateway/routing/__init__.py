"""How a call finds an answer: the routes, their breakers, queues and prices, the order they are asked in, and hedging.

It knows endpoints and prompts, and nothing of who listens to a call or where its answer is kept.
"""
