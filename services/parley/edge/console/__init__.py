"""The console: pages for people, served by the edge; they use the RPCs and streams that every program uses."""
