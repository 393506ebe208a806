"""Storage of documents, logs and vectors: three ports, a folder for each store behind them, and `opening`.

It keeps what it is given, and knows no message and no service.
"""
