"""Generated from protos/parley/v1 by `make protos`. Never edited by hand."""
