"""Pointwise intervals: of means, ratios, proportions, and of a recipe's mean over training runs and chains."""
