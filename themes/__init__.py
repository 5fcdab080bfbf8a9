"""Themes, one TOML file each. Copy one into the config folder and change it."""
