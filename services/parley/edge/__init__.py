"""The edge: the orchestrator's RPCs over HTTP, for programs that do not speak gRPC. It has no state and no authority."""
