"""One folder an engine. `base` is all that the host knows of any of them."""
