"""One module a family of formats. They run in the worker process: files may be hostile."""
