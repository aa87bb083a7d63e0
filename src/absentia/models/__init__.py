"""Any model as a function from rows to outputs."""
