"""What past debates found, recalled by meaning."""
