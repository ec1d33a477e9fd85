"""Random flows of one to three groupings, run in every way that there is and compared with the model of the rules.

Panes are compared whole and in order, with the counts, the late rows and the output watermarks. These differences are
inherent:

* A replay has one bundle for each processing time, so the bundles of a case have different ones.
* A stream never ends, so it is compared with the panes before the end; a replay gives no counts.
* Several shards have no order among each other, so their panes are compared in any order. `Case.one_shard` says which
  flows have one shard, and why.
* Entries and micro-batches are cut anywhere between bundles, so the `step` of a pane is not compared. Its processing
  time names the bundle.
"""
