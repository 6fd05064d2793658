"""The figures of a report, each made from the rows of its table."""
