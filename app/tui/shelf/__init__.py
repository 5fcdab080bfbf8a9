"""The documents of the conversation: their list, their text, and what is found in it."""
