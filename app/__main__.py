"""`python -m app` is `ling-chat`."""

from app.cli.main import run

if __name__ == "__main__":
    run()
