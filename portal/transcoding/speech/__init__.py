"""Write down what is said in a rendition: speech to text, by a child process.

Begin with `transcribe`, the parent's side. The child's side is `__main__`, run by `python -I -m` of
this package, with what the extra `portal[captions]` installs. Here is what both sides know.
"""

SAMPLE_RATE_HZ = 16_000
# What the child ends with when its model was not taught the language.
UNKNOWN_LANGUAGE = 3
