"""The model as a service: predictions now, labels whenever they come, nothing lost.

Each module imports only from those before it: ``events`` (what is in the log), ``database`` (where it is kept),
``ledger`` (what becomes of rows and labels), ``fold`` (the model as a function of the log), ``predictor``, ``writer``
and ``learner`` (the two threads beside the event loop), ``streams_at_work``, ``app`` (HTTP) and ``server``.
"""
