"""``python -m devdan`` is the command ``devdan``."""

from devdan.cli import app

if __name__ == "__main__":
    app(prog_name="devdan")
