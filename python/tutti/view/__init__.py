"""How results are shown: pages, tables, charts, text and traces."""
