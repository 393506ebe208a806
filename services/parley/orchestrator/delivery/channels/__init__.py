"""The ways to a receiver, one module each. They know nothing of hooks' storage, and send through the guarded sender alone."""
