"""Mutation testing: the code is changed a little, and a test should notice. `docs/decisions/mutants.md` says how to read it."""
