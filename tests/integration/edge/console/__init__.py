"""The console's pages, in Debian's Chromium."""
