"""The law kit checks a combiner, of the library or your own, against the laws of its capability."""

from .kit import LAWS, TYPES, LawViolation, TypedValues, check_laws, machine, subjects, typed, values_of

__all__ = ["LAWS", "TYPES", "LawViolation", "TypedValues", "check_laws", "machine", "subjects", "typed", "values_of"]
