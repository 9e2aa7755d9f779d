"""The command line: one module a command or two, loaded when that command is asked for."""
