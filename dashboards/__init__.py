"""The pages and what they share; nothing here computes."""
