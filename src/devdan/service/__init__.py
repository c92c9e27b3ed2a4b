"""A model behind HTTP: predictions now, labels whenever they come, nothing lost.

Rows and labels go into a log. In the order of imports: ``schema`` (what is in the log), ``bodies`` and ``arrow`` (what
requests bring), ``sql``, ``store`` and ``postgresql`` (where the log is kept), ``models``, ``ledger`` (what counts),
``fold`` (the model as a function of the log), ``predictor``, ``supervision`` (what becomes of faults), ``writer`` and
``learner`` (the two threads beside the event loop), ``replay``, ``engine`` (the streams), ``metrics``, ``auth``,
``answers`` and ``http`` (an ASGI application), ``api``, ``inference`` and ``live`` (its operations), ``kafka`` and
``server``.
"""
