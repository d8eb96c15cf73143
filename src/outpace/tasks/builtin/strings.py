"""Text."""

# The references are written as a beginner would write them, without types, docstrings or idioms:
# ruff: noqa: D103
# mypy: allow-untyped-defs, no-check-untyped-defs

import random
import string
from collections import Counter
from itertools import groupby

from outpace.schema import Args, Purpose
from outpace.tasks.define import task


def letters(rng: random.Random, count: int, alphabet: str = string.ascii_lowercase) -> str:
    """`count` characters drawn from `alphabet`."""
    return "".join(rng.choices(alphabet, k=count))


def words(rng: random.Random, count: int, longest: int = 3, alphabet: str = "abcde") -> list[str]:
    """`count` short words, so that some repeat."""
    return [letters(rng, rng.randint(1, longest), alphabet) for _ in range(count)]


@task(
    "strings/word_count",
    prompt="""text is a string of lower-case words separated by single spaces, possibly empty, up to 300 words.
    Return a dict from each word to the number of times it appears.""",
    example=("a rose is a rose",),
)
def word_count(text):
    words = text.split()
    counts = {}
    for word in words:
        total = 0
        for other in words:
            if other == word:
                total += 1
        counts[word] = total
    return counts


@word_count.inputs
def word_count_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, one word, all equal, many; 300 words for timing."""
    if purpose is Purpose.TIMING:
        return [(" ".join(words(rng, 300)),)]
    texts = ["", "a", "a a a", "a aa aaa aa", "one two three two one", "to be or not to be"]
    return [(text,) for text in [*texts, *(" ".join(words(rng, count)) for count in (5, 20, 80, 150))]]


@word_count.oracle
def word_count_oracle(text: str) -> dict[str, int]:
    """By Counter."""
    return dict(Counter(text.split()))


@task(
    "strings/caesar_cipher",
    prompt="""text is a string, possibly empty, up to 8000 characters, and shift is an int from 0 to 25. Return
    text with every letter a-z and A-Z moved shift places on in the alphabet, from z back to a, keeping case. Other
    characters stay.""",
    example=("Hi, xyz!", 3),
)
def caesar_cipher(text, shift):
    result = ""
    for char in text:
        if "a" <= char <= "z":
            result += chr((ord(char) - ord("a") + shift) % 26 + ord("a"))
        elif "A" <= char <= "Z":
            result += chr((ord(char) - ord("A") + shift) % 26 + ord("A"))
        else:
            result += char
    return result


@caesar_cipher.inputs
def caesar_cipher_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, no letters, both ends of the alphabet; 8000 characters for timing."""
    alphabet = string.ascii_letters + " .,!"
    if purpose is Purpose.TIMING:
        return [(letters(rng, 8000, alphabet), rng.randint(1, 25))]
    cases: list[Args] = [("", 5), ("abc", 0), ("xyz XYZ", 3), ("12 3!", 7), ("Zz", 1), ("aA", 25)]
    cases += [("naïve Ünï", 4), (string.ascii_letters, 13)]
    return cases + [(letters(rng, count, alphabet), rng.randint(0, 25)) for count in (5, 40, 400)]


@caesar_cipher.oracle
def caesar_cipher_oracle(text: str, shift: int) -> str:
    """By a translation table."""
    lower, upper = string.ascii_lowercase, string.ascii_uppercase
    moved = lower[shift:] + lower[:shift] + upper[shift:] + upper[:shift]
    return text.translate(str.maketrans(lower + upper, moved))


@task(
    "strings/run_length_encode",
    prompt="""text is a string, possibly empty, up to 12000 characters. Return a list of [character, count] pairs,
    one for each run of equal neighbouring characters, in order.""",
    example=("aaabcc",),
    returns_sequence=True,
)
def run_length_encode(text):
    result = []
    i = 0
    while i < len(text):
        count = 1
        while i + count < len(text) and text[i + count] == text[i]:
            count += 1
        result.append([text[i], count])
        i += count
    return result


@run_length_encode.inputs
def run_length_encode_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, single, one long run, no runs; 12000 characters in runs of 1 to 39 for timing."""
    if purpose is Purpose.TIMING:
        return [("".join(letters(rng, 1) * rng.randint(1, 39) for _ in range(600))[:12000],)]
    texts = ["", "a", "aaaa", "abc", "aabbaa", "  x  ", "1112"]
    texts += ["".join(letters(rng, 1, "ab ") * rng.randint(1, 5) for _ in range(count)) for count in (4, 20, 60)]
    return [(text,) for text in texts]


@run_length_encode.oracle
def run_length_encode_oracle(text: str) -> list[list[object]]:
    """By groupby."""
    return [[char, len(list(run))] for char, run in groupby(text)]


@task(
    "strings/count_vowels",
    prompt="""text is a string, possibly empty, up to 40000 characters. Return how many of its characters are
    vowels (a, e, i, o, u in lower or upper case).""",
    example=("Hello Anna",),
)
def count_vowels(text):
    count = 0
    for char in text:
        if char in "aeiouAEIOU":
            count += 1
    return count


@count_vowels.inputs
def count_vowels_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, no vowels, only vowels, both cases; 40000 characters for timing."""
    alphabet = string.ascii_letters + " "
    if purpose is Purpose.TIMING:
        return [(letters(rng, 40000, alphabet),)]
    texts = ["", "a", "B", "aeiou", "AEIOU", "rhythm", "y Y", "é a", "1 2 3"]
    return [(text,) for text in [*texts, *(letters(rng, count, alphabet) for count in (10, 100, 1000))]]


@count_vowels.oracle
def count_vowels_oracle(text: str) -> int:
    """One count per vowel."""
    return sum(map(text.count, "aeiouAEIOU"))


@task(
    "strings/longest_palindrome",
    prompt="""text is a string, possibly empty, up to 120 characters. Return the length of its longest substring
    that reads the same backwards.""",
    example=("banana",),
)
def longest_palindrome(text):
    best = 0
    for i in range(len(text)):
        for j in range(i, len(text)):
            part = text[i : j + 1]
            if part == part[::-1] and len(part) > best:
                best = len(part)
    return best


@longest_palindrome.inputs
def longest_palindrome_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, single, even and odd ones; 120 characters of a small alphabet for timing."""
    if purpose is Purpose.TIMING:
        return [(letters(rng, 120, "abcd"),)]
    texts = ["", "a", "ab", "aa", "aba", "abba", "abcde", "xabay", "aaaaaaa", "xabcba"]
    return [(text,) for text in [*texts, *(letters(rng, count, "ab") for count in (8, 20, 40))]]


@longest_palindrome.oracle
def longest_palindrome_oracle(text: str) -> int:
    """Manacher's scan over the text with marks between its characters."""
    marked = "|" + "|".join(text) + "|"
    radius = [0] * len(marked)
    centre = right = 0
    for i in range(len(marked)):
        if i < right:
            radius[i] = min(right - i, radius[2 * centre - i])
        low, high = i - radius[i] - 1, i + radius[i] + 1
        while low >= 0 and high < len(marked) and marked[low] == marked[high]:
            radius[i] += 1
            low, high = low - 1, high + 1
        if i + radius[i] > right:
            centre, right = i, i + radius[i]
    return max(radius)


@task(
    "strings/group_anagrams",
    prompt="""words is a list of lower-case words, possibly empty, up to 120. Words with the same letters, in any
    order, form a group. Return the list of groups: words in a group keep their order, and groups are ordered by
    their first word's position.""",
    example=(["tea", "bat", "eat", "tab"],),
    returns_sequence=True,
    split="heldout",
)
def group_anagrams(words):
    groups = []
    for word in words:
        for group in groups:
            if sorted(group[0]) == sorted(word):
                group.append(word)
                break
        else:
            groups.append([word])
    return groups


@group_anagrams.inputs
def group_anagrams_inputs(rng: random.Random, purpose: Purpose) -> list[Args]:
    """Empty, repeated words, one group, no groups; 120 words for timing."""
    if purpose is Purpose.TIMING:
        return [(words(rng, 120, 5, "abcdefg"),)]
    lists = [[], ["a"], ["a", "a"], ["ab", "ba", "abc"], ["a", "b", "c"], ["aab", "abb", "baa", "bab"]]
    return [(chosen,) for chosen in [*lists, *(words(rng, count, 3, "abc") for count in (6, 20, 60))]]


@group_anagrams.oracle
def group_anagrams_oracle(words: list[str]) -> list[list[str]]:
    """A dict from sorted letters to words."""
    groups: dict[str, list[str]] = {}
    for word in words:
        groups.setdefault("".join(sorted(word)), []).append(word)
    return list(groups.values())
