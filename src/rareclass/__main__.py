"""``python -m rareclass``: the command line where its script is not on the path."""

from rareclass.cli.main import main

if __name__ == "__main__":
    main()
