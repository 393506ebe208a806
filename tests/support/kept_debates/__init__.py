"""The debates whose logs are kept, a module for each format."""
