"""Sums that are wrong about the weights of rows."""

from __future__ import annotations

import numpy as np

from .columnar import TotalFn


class NoWeights(TotalFn):
    def weighed(self, columns, weights):
        return columns[0].values, np.ones_like(weights)


class SignOfWeights(TotalFn):
    def weighed(self, columns, weights):
        return columns[0].values * np.sign(weights), np.sign(weights)


class HeavyRetractionsLost(TotalFn):
    def weighed(self, columns, weights):
        return super().weighed(columns, np.maximum(weights, -1))


class NarrowWeights(TotalFn):
    def weighed(self, columns, weights):
        return super().weighed(columns, weights.astype(np.int32).astype(np.int64))


class ByteWeights(TotalFn):
    def weighed(self, columns, weights):
        return super().weighed(columns, weights.astype(np.int8).astype(np.int64))


class NoRetractions(TotalFn):
    def weighed(self, columns, weights):
        return super().weighed(columns, np.maximum(weights, 0))


class FirstColumnWeighed(TotalFn):
    """A sum of products, and the sum of the second column without its weights."""

    def weighed(self, columns, weights):
        return columns[0].values * columns[1].values * weights, columns[1].values
