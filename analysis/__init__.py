"""The study and the benchmark, on the package's public names."""
