"""The two sentences that page and server share: what the page asks, what the server tells, both
JSON.
"""

from bokeh.core.properties import String
from bokeh.model import DataModel


class Talk(DataModel):
    """`request` is written by the page, `message` by the server; the socket carries both."""

    request = String("")
    message = String("")
