"""From saved runs to figures and one page; nothing is computed here."""
