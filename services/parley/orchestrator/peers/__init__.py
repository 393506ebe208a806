"""The other services as the orchestrator reaches them: agents through the gateway, convergence, ratings, memory. Knows the model."""
