"""Who calls, and what they may: the one source of tenant, subject and roles. Knows no service and no store."""
