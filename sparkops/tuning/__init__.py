"""The machine that Spark runs on: memory, sockets, kernels, checkpoint files, the start of processes."""
