#!/usr/bin/env python3
"""Writes tests/data/sacrebleu/scores.json, the reference values of the tests of translation scores.

Regenerate (needs sacreBLEU 2, `pip install sacrebleu`, on a Python of Unicode 14 or later):

    tools/sacrebleu_fixtures.py

All sentences are made up for the purpose. `lines` holds what each tokenizer makes of a line and
its lower case; `corpora` maps a name to {hypotheses, references, scores}, where a score has the
options, the results for the corpus and those of each sentence.
"""

import argparse
import json
import logging
import pathlib
import re

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.bleu import _get_tokenizer

LINES = [
    "", " ", "word", ".", "..", "a.", ".a", "a..b", "...", ",.,", "- -- ---",
    "It costs 1,234.56 euros, or 1.234,56.", "In 1999. In 2000, 3. 4,5 6.x x.7 8,y y,9",
    "1-2 a-b 3-c d-4 5--6 7 -8 well-known 2-", "pages 10-12,14-16.", ".5 ,5 5. 5, .5. ,5, 5.5.",
    "Tom said: \"I don't know!\" (really?)", "a/b c\\d e_f g^h i`j {k} [l] <m> n=o p+q r*s t~u v|w",
    "100% #1 $5 a@b.c & co; what?!", "'quoted' it's o'clock ''", "x'.'y ','",
    "&quot;Hi&quot; &amp; &lt;bye&gt; &apos;s &amp;lt; &amp;amp; &#39; &quot", "&amp;quot;x&amp;gt;",
    "<skipped>word <skip<skipped>ped> <SKIPPED>", "hyphen-\nated and\nnext --\n\nlast", "end-\n", "-\n",
    "tab\tand  two spaces \u00a0 no-break \u2003 em \u3000 wide", "\u0085next\x1cfile\x1funit\x0bvt\x0cff",
    "zero\u200bwidth soft\u00adhyphen \ufeffmark joiner\u2060x", "trailing   ", "trailing.   ", "trailing 5.\u2003",
    "Der Preis beträgt 12,50 €, nicht 3.000 £ – oder 5½ ¥.", "„Grüß Gott!“, sagte er… »Ja«, ›nein‹.",
    "Größe: 5° × 3² = ½ ¼ Ⅳ ① ٣٫٥ ٣.٥ ३,५", "a–b 1–2 1—2 a—b 1’2 a’b l’été", "¿Qué? ¡Nada! «oui»",
    "© ® ™ ← → ∑ ≤ ≠ ♥ ☺ 😀👍🏽 👨‍👩‍👧 🇩🇪", "1+1=2 a+b 5$ $5 5€6", "x² H₂O 10⁻³ №5 §7 ¶ 5‰",
    "中文，没有空格。你好！１２３．４５", "日本語「テスト」です・カタカナー。", "한국어 문장입니다.", "混ぜ abc 中文 5,000円。",
    "ελληνικά; ΟΔΟΣ ΣΑΣ Σ ΑΣ. ΑΣ' ΑΣΑ Σ́ Α\u0301Σ ΑΣ\u00adΒ ⅣΣ ªΣ 5Σ", "İSTANBUL ISPARTA ıi ǅ ǈ ẞ ß Ω Å K",
    "ПРИВЕТ, МИР! Ѐ", "ÀÉÎÕÜ Ÿ Þ Ð Ł Ǆ", "e\u0301 E\u0301 A\u030a \u0308", "ＦＵＬＬ ｗｉｄｔｈ，ｍａｒｋ．",
    "ʰª²º¹ Ⓐⓐ 🅰 ℵ ℃ ℅", "हिन्दी वाक्य। ภาษาไทย ไม่มี", "العربية، نص؟ עברית׳ ״", "a.b.c,d,e 1.2.3,4,5 a1.b2,c3",
    "\"'\"'\"", "?!?!", "$$$", "€€€", "5.€.5", "5€.5", ".€", "a.€", "€.a", "5.5€5,5", "\u2028line\u2029par",
    "nul\x00byte \x7f del", "~", "`~`", "a\u00b7b 5\u00b75 l\u00b7l", "_ a_b _c_ 1_2", "(a)(b) ((c)) [1](2)",
]

CORPORA = {
    "plain": (
        ["The dog bit the man .", "A red bird sits on the old wall.", "Two children play in the snow, laughing!",
         "He paid 1,250.75 dollars (in cash) for it."],
        [["The dog had bit the man .", "A red bird is sitting on the old stone wall.",
          "Two children are playing in the snow, laughing.", "He paid $1,250.75 in cash for it."]]),
    "shouted": (
        ["THE DOG BIT THE MAN.", "Ein ROTER Vogel, Größe 5.", "ΟΔΟΣ ΚΑΙ ΣΑΣ İ", "Mixed Case Words Stay Here"],
        [["The dog bit the man.", "ein roter Vogel, GRÖSSE 5.", "οδος και σας i̇", "mixed case words stay here"]]),
    "several": (
        ["the cat sat on the mat", "there is a cat here", "green ideas sleep", "one two three four five six"],
        [["the cat is on the mat", "a cat is here", "green ideas sleep furiously now", "one two three"],
         ["there is a cat on the mat", "there is one cat here now", "", "one two three four five six seven eight nine"],
         ["the cat sat down on a mat today", "here is a cat", "ideas sleep", "six five four three two one"]]),
    "equal": (["the same line stands here twice", "and this one , too ."],
              [["the same line stands here twice", "and this one , too ."]]),
    "empty_hypotheses": (["a b c d e", "", "   ", "x"], [["a b c d e", "f g h", "i j", "x y z"]]),
    "empty_references": (["a b c d e", "f g", ""], [["a b c d e", "", ""]]),
    "all_empty": (["", "", " "], [["", "", ""]]),
    "one_word": (["yes", "no", "Yes.", "ja"], [["yes", "yes", "yes.", "nein"]]),
    "two_words": (["good day", "bad day"], [["good day", "bad night"]]),
    "no_bigram": (["a c e g i"], [["g a i c e"]]),
    "no_trigram": (["a b x c d y e"], [["a b q c d r e"]]),
    "no_fourgram": (["a b c x d e f y"], [["a b c q d e f r"]]),
    "no_overlap": (["this is a cat"], [["okay thanks"]]),
    "no_common_character": (["abc def"], [["ghi jkl"]]),
    "longer": (["a a a a a a a a a a a a"], [["a a a b"]]),
    "clipped": (["the the the the the the the"], [["the cat is on the mat"]]),
    "german": (
        ["Ein Mann fährt mit dem Fahrrad durch die Straße.", "„Das kostet 12,50 €“, sagt sie – und lacht…",
         "Drei Hunde; zwei Katzen: alle schlafen!", "Er läuft 3,5 km in 20 min."],
        [["Ein Mann fährt auf einem Fahrrad durch eine Straße.", "„Das kostet 12,50 €“, sagt sie und lacht…",
          "Drei Hunde, zwei Katzen: alle schlafen.", "Er läuft 3.5 km in 20 Min."]]),
    "symbols": (
        ["¿Cuánto? ¡5€! «sí» © 2020 → ½", "a.b,c 1.2,3 x²+y²=z² ☺", "l’été—déjà 1–2 №5"],
        [["¿Cuánto? 5 €. «si» ©2020 ⇒ ½", "a.b, c 1.2,3 x² + y² = z² ☻", "l'été — déjà 1-2 № 5"]]),
    "cjk": (
        ["我喜欢喝绿茶。", "今日は天気がいいですね！", "서울에 비가 온다.", "價格是5,000元"],
        [["我很喜欢喝茶。", "今日は天気がとてもいいです。", "서울에는 비가 왔다.", "价格为5,000元。"]]),
    "entities": (
        ["&quot;Tom &amp; Ann&quot; &lt;here&gt;", "<skipped>The rest of the line", "a &amp;lt; b &apos;c&apos;"],
        [["\"Tom & Ann\" <here>", "The rest of the line", "a < b 'c'"]]),
    "line_breaks": (["a hyphen-\nated word in\nthe middle", "no break at all here"],
                    [["a hyphenated word in the middle", "no break at\nall here"]]),
    "spaces": (["  two  spaces\there \u00a0 and\u3000wide  ", "a\u200bb c\u00add", "tail \u2003"],
               [["two spaces here and wide", "ab cd", "tail"]]),
    "punctuation": (["(hi)", "\"Wait!\" he said... (twice)", "don't - stop", "!", "?! ..", "'a' b' 'c", "„x“ y…"],
                    [["hi", "“Wait!” he said … twice", "do n't stop", "!", "..", "a b c", "x y"]]),
    "combining": (["e\u0301te\u0301 na\u0308ch", "👨‍👩‍👧 👍🏽 ok"], [["été näch", "👨‍👩‍👦 👍 ok"]]),
}

SMOOTHINGS = [("exp", None), ("none", None), ("floor", None), ("floor", 0.02), ("add-k", None), ("add-k", 0.5)]


def scores_of(hypotheses, references):
    def bleu(**options):
        corpus = BLEU(force=True, **options)
        score = corpus.corpus_score(hypotheses, references)
        sentence = BLEU(force=True, **{**options, "effective_order": True})
        return {
            "metric": "bleu", "options": {key: value for key, value in options.items() if value is not None},
            "score": score.score, "precisions": score.precisions, "brevity_penalty": score.bp,
            "hypothesis_length": score.sys_len, "reference_length": score.ref_len,
            "details": score._verbose, "signature": signature(corpus),
            "sentences": [sentence.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)]}

    def chrf(**options):
        corpus = CHRF(**options)
        score = corpus.corpus_score(hypotheses, references)
        return {
            "metric": "chrf", "options": options, "name": score.name, "score": score.score,
            "signature": signature(corpus),
            "sentences": [corpus.sentence_score(h, list(r)).score for h, *r in zip(hypotheses, *references)]}

    yield from (bleu(tokenize=tokenize) for tokenize in ("13a", "intl", "char", "none"))
    yield from (bleu(tokenize="none", smooth_method=method, smooth_value=value) for method, value in SMOOTHINGS)
    yield bleu(tokenize="13a", lowercase=True)
    yield bleu(tokenize="intl", lowercase=True, effective_order=True, smooth_method="add-k")
    yield bleu(tokenize="13a", max_ngram_order=2, smooth_method="floor")
    yield from (chrf(word_order=order, **more) for order in (0, 2)
                for more in ({}, {"lowercase": True}, {"whitespace": True}, {"eps_smoothing": True}))
    yield chrf(char_order=3, word_order=1, beta=1)


def signature(metric):
    return re.sub(r"\|version:.*", "", metric.get_signature().format())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    path = pathlib.Path(__file__).resolve().parent.parent / "tests/data/sacrebleu/scores.json"
    parser.add_argument("--output", type=pathlib.Path, default=path, help="the file to write")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    tokenizers = {name: _get_tokenizer(name)() for name in ("13a", "intl", "char", "none")}
    lines = [{"line": line, "lower": line.lower(),
              **{name: tokenizer(line.rstrip()).split() for name, tokenizer in tokenizers.items()}}
             for line in LINES]
    corpora = {name: {"hypotheses": hypotheses, "references": references,
                      "scores": list(scores_of(hypotheses, references))}
               for name, (hypotheses, references) in CORPORA.items()}
    texts = [f'"sacrebleu": {json.dumps(sacrebleu.__version__)}']
    texts.append('"lines": [\n' + ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n]")
    for name, corpus in corpora.items():
        scores = corpus.pop("scores")
        rows = ",\n".join(json.dumps(score) for score in scores)
        head = json.dumps(corpus, ensure_ascii=False)[:-1]
        texts.append(f'{json.dumps("corpus " + name)}: {head}, "scores": [\n{rows}\n]}}')
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("{\n" + ",\n".join(texts) + "\n}\n", encoding="utf-8")
    print(f"{options.output.name}: {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
