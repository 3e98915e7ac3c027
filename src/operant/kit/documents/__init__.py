"""Read files that are not text: pictures, notebooks, PDF, office files, books, and the lists of archives.

`python -I -m operant.kit.documents REQUEST` reads one file and writes an answer; it is run in a process of its own with
limits, so that a hostile file hurts nothing else. `request` is what both sides know.
"""
