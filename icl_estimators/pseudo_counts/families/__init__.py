"""Smoothing rules with a few parameters, fitted to an estimator's predictions."""

from icl_estimators.pseudo_counts.families.fit import Estimate, FamilyFit, ParameterFit, fit_families
from icl_estimators.pseudo_counts.families.rules import FAMILIES, Family, smoothing_family

__all__ = ["FAMILIES", "Estimate", "Family", "FamilyFit", "ParameterFit", "fit_families", "smoothing_family"]
