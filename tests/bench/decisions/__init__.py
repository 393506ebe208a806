"""The simulation that decisions are measured by: agents of known skill, their debates, and what is decided from them."""
