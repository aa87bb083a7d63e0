"""The search for few sets of players whose effects give the values of coalitions."""
