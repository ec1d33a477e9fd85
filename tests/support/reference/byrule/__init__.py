"""The grouping operator read off the numbered rules: one row, one window, one rule at a time.

It shares no code with the operator. A comment `rule n` stands where rule n of
docs/semantics.md is carried out. docs/design/rule_notes.md settles what the rules leave open, in its
notes D1, D2, ...
"""
