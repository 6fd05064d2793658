"""Pointwise intervals: of means, ratios, proportions, and of a recipe's mean over training runs and chains."""

__all__: list[str] = []
