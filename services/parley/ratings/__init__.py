"""How agents have done, and what their votes weigh."""
