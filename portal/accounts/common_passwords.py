"""Passwords of twelve characters or more that are tried first, in lower case.

What lists of leaked passwords have in common at this length: runs along the keyboard, counting,
a short favourite said twice, and names of a year.
"""

_RUNS = (
    "123456789012",
    "1234567890123",
    "12345678901234",
    "123456789012345",
    "1234567890123456",
    "012345678910",
    "098765432109",
    "987654321098",
    "abcdefghijkl",
    "abcdefghijklm",
    "abcdefghijklmnop",
    "abcd12345678",
    "abcdef123456",
    "abc123456789",
    "a12345678901",
    "1q2w3e4r5t6y",
    "1q2w3e4r5t6y7u",
    "1qaz2wsx3edc",
    "1qaz2wsx3edc4rfv",
    "qwertyuiop12",
    "qwertyuiop123",
    "qwertyuiop[]",
    "qwertyuiopasdf",
    "qwertyuiopasdfghjkl",
    "qwerty123456",
    "qwerty1234567",
    "qwerty12345678",
    "qwertyqwerty",
    "asdfghjkl123",
    "asdfghjklqwertyuiop",
    "asdfasdfasdf",
    "zaq12wsxcde3",
    "zxcvbnm12345",
    "q1w2e3r4t5y6",
)
_WORDS = (
    "password",
    "passw0rd",
    "welcome",
    "letmein",
    "iloveyou",
    "administrator",
    "admin",
    "portal",
    "changeme",
    "secret",
    "football",
    "baseball",
    "sunshine",
    "princess",
    "superman",
    "dragon",
    "monkey",
    "trustno1",
    "mustang",
    "computer",
    "internet",
)
_ENDINGS = ("1234", "12345", "123456", "1234567", "12345678", "123", "123!", "1234!", "!", "1!")
_YEARS = tuple(str(year) for year in range(2015, 2036))
_PHRASES = (
    "correct horse battery staple",
    "correcthorsebatterystaple",
    "mypassword123",
    "thisismypassword",
    "adminadminadmin",
    "unbelievable",
    "iloveyousomuch",
    "passwordpassword",
    "testtesttest",
    "default12345",
)

COMMON = frozenset(
    {
        *_RUNS,
        *_PHRASES,
        *(word + ending for word in _WORDS for ending in (*_ENDINGS, *_YEARS, word)),
    }
)
