"""The plain line mode: a prompt, and answers as text that is never drawn over."""
