"""WHAT is computed: the algebra, the combiners and their law kit."""
