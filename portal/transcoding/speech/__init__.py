"""Speech to text: transcribe the sound of a rendition in a child process.

Begin with `transcribing`, the parent's side. The child's side is `__main__`, which `python -I -m`
runs with the libraries of the extra `portal[captions]`. Both sides use the constants here.
"""

SAMPLE_RATE_HZ = 16_000
# Exit status of the child for a language that its model doesn't know.
UNKNOWN_LANGUAGE = 3
# Exit status of the child if it can't tell the language.
UNSURE_LANGUAGE = 4
