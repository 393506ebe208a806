"""Research: what is read on the web for a debate. It owns the guard on outgoing requests, and may know the model alone."""
