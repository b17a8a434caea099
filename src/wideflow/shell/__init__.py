"""What the shell commands share: errors in one sentence, progress, tables on the terminal."""
