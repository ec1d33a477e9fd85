"""Expressions of columns: values that print as they are written, which run on Arrow tables."""

from .expr import Expr, col

__all__ = ["Expr", "col"]
