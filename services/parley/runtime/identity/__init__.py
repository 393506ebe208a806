"""The caller's identity: the one source of tenant, subject and roles. It knows no service and no store."""
