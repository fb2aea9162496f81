"""What the command line does, callable: from files to models, and from models to files."""
