"""What `ling-chat doctor` looks at."""
