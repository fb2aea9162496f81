"""What the command line runs: from files to models, and from models to scored files."""
