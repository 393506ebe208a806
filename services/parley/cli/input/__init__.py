"""What comes in: options, question, context documents, configuration and agents, read, checked and made a request.

It knows the configuration and the client's messages; it knows no command, shows nothing and calls no service.
"""
