"""A local web application that answers "what if" questions about a collective.

:func:`tutti.explore.app.create_app` returns the ASGI application, and
:func:`tutti.explore.server.serve` runs it on this machine. Both need the extra ``tutti[explore]``.
Results are those of `tutti compare` and `tutti run`: the package adds no model.
"""
