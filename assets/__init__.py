"""Data the app ships with: the model registry, prompts, the sample document."""
