"""What every service shares to be a service."""
