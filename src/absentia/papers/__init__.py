"""The reproduction of the paper: its data, its models, one file for each experiment."""
