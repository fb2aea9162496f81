"""Pages of the site that are made of the code: the API, the commands, llms.txt."""
