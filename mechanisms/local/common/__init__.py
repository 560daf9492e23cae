"""What mechanisms on devices have in common."""
