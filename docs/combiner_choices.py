"""The use of each combiner: what it is taken for, and which other one is taken instead.

Facts that code knows, such as the size of a state, are not here: `combiner_facts.py` measures them.
"""

from __future__ import annotations

from collections.abc import Mapping

USES: Mapping[str, str] = {
    "Count": "Rows; with a column, its values that are not null. `CountIf` counts rows with a condition, "
    "`CountDistinct` different values.",
    "Sum": "Totals of numbers. Whole numbers and decimals are exact; give `exact=True` for floats whose retractions "
    "must leave no error of rounding.",
    "Mean": "Averages. `Median` if a few values are far off, `WeightedMean` if rows count differently.",
    "Min": "The least value so far. `BottomK` for the k least, `ArgMin` for another column of that row.",
    "Max": "The greatest value so far. `TopK` for the k greatest, `ArgMax` for another column of that row.",
    "Median": "The typical value, which outliers do not move. `ApproxQuantiles` for keys with very many different "
    "values.",
    "Quantile": "A limit such as the 95th percentile, exactly. `Quantiles` for several, `ApproxQuantiles` for keys "
    "with very many different values.",
    "CountDistinct": "Visitors, orders, words: each once, exactly. `ApproxCountDistinct` where a key has millions of "
    "them.",
    "CountIf": "A share: `CountIf(condition) / Count()`. Any other combiner takes a condition by `.where(condition)`.",
    "StdDev": "The spread in the unit of the values. Give `exact=True` where retractions must leave no error.",
    "Variance": "The spread, as a square. `StdDev` is its root, and has the unit of the values.",
    "First": "The first value in the order of a time, such as an opening price. `ArgMin` is the same by any column.",
    "Last": "The latest value in the order of a time, such as the state of an order. `ArgMax` is the same by any "
    "column.",
    "ArgMax": "The name of the winner: a column of the row in which another one is greatest. `TopK` has several.",
    "ArgMin": "The name of the fastest: a column of the row in which another one is least. `BottomK` has several.",
    "TopK": "Top tens, by their values or by another column. `HeavyHitters` for what is most frequent.",
    "BottomK": "The k least, by their values or by another column.",
    "CollectList": "All rows of a key, where nothing smaller will do. The state has every one of them.",
    "CollectSet": "The different values themselves. `CountDistinct` for their number.",
    "ApproxCountDistinct": "Different values of keys with millions of them, within 2 % or an error of your choice. "
    "`CountDistinct` is exact, and as small up to some thousand values.",
    "ApproxQuantiles": "Latencies: quantiles within 1 % or an error of your choice, of any number of values. "
    "`Quantiles` is exact.",
    "BitXor": "A check that two sets of numbers are the same. `Fingerprint` does so for whole rows.",
    "BoolAnd": "A flag that holds for every row.",
    "BoolOr": "A flag that holds for some row.",
    "Correlation": "Two columns that grow together or against each other, from -1 to 1.",
    "Covariance": "How two columns vary together, in the units of both, for formulas of your own. `Correlation` has no "
    "unit.",
    "Fingerprint": "A comparison of two tables, whatever the order of their rows.",
    "GeometricMean": "The mean of growth rates and ratios, above zero.",
    "HeavyHitters": "The most frequent of very many values. `Mode` for the one most frequent value, exactly; "
    "`TopK` for the greatest.",
    "Histogram": "Counts by bins that you choose, as for a chart.",
    "Kurtosis": "The weight of the tails of a distribution, as Spark has it.",
    "LinearRegression": "A trend: slope, intercept, and the share that the line explains.",
    "Mode": "The most frequent value, exactly. `HeavyHitters` for keys with very many different values.",
    "PerKey": "A result for each value of a second key, as one map: counts by country in each row of a user.",
    "Product": "Factors, such as interest. `GeometricMean` for their mean.",
    "Quantiles": "Several exact quantiles from one state. `ApproxQuantiles` for very many different values.",
    "Skewness": "The side to which a distribution leans, as Spark has it.",
    "Struct": "Several results as one column, such as one accumulator of Spark.",
    "WeightedMean": "Averages in which rows count differently, such as a price by amount.",
}
"""A sentence or two for each combiner that the package exports."""
