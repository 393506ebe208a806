"""One-time links: what one is for is signed into its token, and whoever shows it may do that one thing, once."""
