"""Where Parley keeps its documents, logs and vectors: small ports, and the adapters behind them."""
