"""Random flows of one to three groupings, run in every way that there is and compared with the models of the rules."""
