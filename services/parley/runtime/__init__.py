"""What every service shares to be a service. It knows the contract, and no service."""
