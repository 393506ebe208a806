"""The other services as the orchestrator reaches them: agents through the gateway, convergence, ratings, memory; an issue tracker. Knows the model."""
