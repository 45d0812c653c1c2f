"""Terms: words that differ stay different, and the same word written in two ways is one term, in every script."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.lexical import terms

DIFFERENT = {
    "Devanagari": [("दान", "दीन"), ("दान", "दिन"), ("दीन", "दिन"), ("क", "क्ष")],  # gift, poor, day
    "Bengali": [("দান", "দিন"), ("বল", "বালা"), ("কাল", "কল")],
    "Tamil": [("கல்", "கால்"), ("கல்", "கலை"), ("பல", "பால்")],
    "Arabic, pointed": [("كَتَبَ", "كُتُب"), ("عَلِمَ", "عِلْم")],
    "Hebrew, pointed": [("שָׁלוֹם", "שָׁלֵם"), ("סֵפֶר", "סַפָּר")],
    "Greek": [("νόμος", "νομός"), ("ένα", "είναι")],
    "Cyrillic": [("мир", "мйр"), ("все", "всё")],
    "Latin": [("resume", "résumé"), ("pena", "peña")],
    "Khmer": [("ខ្មែរ", "ខ្មូរ")],
    "Kannada": [("ಕನ್ನಡ", "ಕನ್ನಡಿ")],
    "Burmese": [("ကို", "က")],
    "Korean": [("한국", "한글")],
    "Thai": [("น้ำ", "นา")],
    "Han": [("東京", "京都")],
}
SAME = {
    "Latin, composed and decomposed": [("été", "e\u0301te\u0301"), ("Å", "\u212b")],
    "Latin, layout": [("file", "ﬁle"), ("fully", "Ｆｕｌｌｙ"), ("m2", "m²"), ("Straße", "STRASSE")],
    "Greek, final sigma": [("ΟΔΥΣΣΕΥΣ", "Οδυσσεύς".replace("ύ", "υ"))],
    "Cyrillic": [("й", "и\u0306"), ("МИР", "мир")],
    "Arabic, presentation forms": [("مرحبا", "ﻣﺮﺣﺒﺎ"), ("\u0623", "\u0627\u0654")],
    "Persian, joiner": [("می\u200cخواهم", "میخواهم")],
    "Hebrew, direction": [("שלום", "\u200fשלום\u200e")],
    "Devanagari, nukta and joiner": [("\u0958", "\u0915\u093c"), ("क्ष", "क्\u200dष")],
    "Bengali": [("বাড়ি", "বা\u09a1\u09bcি")],
    "Tamil": [("கொ", "க\u0bc6\u0bbe")],
    "Korean, composed and decomposed": [("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8")],
    "kana, half width": [("ガ", "ｶﾞ")],
    "invisible": [
        ("software", "soft\u00adware"),
        ("zerowidth", "zero\u200bwidth"),
        ("bom", "\ufeffbom"),
        ("x", "x\ufe0f"),
    ],
}


@pytest.mark.parametrize(("left", "right"), [pair for pairs in DIFFERENT.values() for pair in pairs])
def test_words_that_differ_are_different_terms(left, right):
    assert terms(left) != terms(right)


@pytest.mark.parametrize(("left", "right"), [pair for pairs in SAME.values() for pair in pairs])
def test_a_word_written_in_two_ways_is_one_term(left, right):
    assert terms(left) == terms(right) != []


@pytest.mark.parametrize(
    "word", [w for name in list(DIFFERENT)[:11] for pair in DIFFERENT[name] for w in pair if name != "Latin"]
)
def test_a_word_with_marks_is_one_term(word):
    assert terms(word) == [unicodedata.normalize("NFKC", word).casefold()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't snake_case 3.5", ["don", "t", "snake", "case", "3", "5"]),  # as before: apostrophes, _ and . divide
        ("❤️ 👩‍💻 ok", ["ok"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("한국어", ["한", "국", "어"]),
        ("ไทย", ["ไ", "ท", "ย"]),
        ("צה״ל", ["צה״ל"]),
        ("សួស្តី\u200bពិភពលោក", ["សួស្តី", "ពិភពលោក"]),  # Khmer marks the ends of words by U+200B only
        ("\u0301 \u200d \ufe0f", []),
    ],
)
def test_where_words_end(text, expected):
    assert terms(text) == expected


@given(st.text())
def test_terms_do_not_change_when_the_text_is_normalised(text):
    assert terms(unicodedata.normalize("NFD", text)) == terms(text)
    assert terms(unicodedata.normalize("NFKC", text)) == terms(text)


@given(st.text(), st.sampled_from(["\u00ad", "\u200d", "\u200e", "\u2060", "\ufe0f"]))
def test_invisible_characters_make_no_difference(text, sign):
    assert terms(sign.join(text)) == terms(text.replace("\u200b", ""))


def test_the_caller_may_change_the_list():
    terms("one thing").append("more")
    assert terms("one thing") == ["thing"]
