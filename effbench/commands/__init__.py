"""The verbs of the command line: one file each, with a function `run(arguments) -> exit code`."""
