"""Patterns of words that claim, deny, doubt or count, in the languages that reviewers answer in."""

# ruff: noqa: RUF001  words of other languages

import re
from collections.abc import Sequence

LETTER = r"0-9A-Za-z_\u00c0-\u024f\u0400-\u04ff\u0600-\u06ff"
"""Characters within words, for word boundaries; Chinese ones are excluded, as no spaces separate them from words."""


def compile_phrase_pattern(*phrases: Sequence[str] | str) -> re.Pattern[str]:
    """Compile a pattern that matches any of `phrases` as whole words; a space matches any white space."""
    alternatives = "|".join(
        phrase.replace(" ", r"\s")
        for table in phrases
        for phrase in ([table] if isinstance(table, str) else table)
    )
    return re.compile(rf"(?<![{LETTER}])(?:{alternatives})(?![{LETTER}])", re.IGNORECASE)


_AI = (
    r"(?:an? |the |some |some kind of |una |uma |un |une |eine[rmn]? |einem |l['\u2019])?"
    r"(?:ai|a\.i\.|ki|ia|ии|artificial intelligence|intelligen[zc]a artificial[e]?|inteligencia artificial"
    r"|inteligência artificial|intelligence artificielle|künstliche[rn]? intelligenz|generative|neural|text-to-video"
    r"|diffusion|generator|algorithm|computer|machine|video model|model|нейросет\w{0,4}|искусственн\w{0,4})"
)
_MADE = (
    r"(?:made|created|produced|generated|rendered|synthesi[sz]ed|built|cread[oa]|hech[oa]|generad[oa]|gerad[oa]|criad[oa]"
    r"|feit[oa]|creat[oa]|generat[oa]|realizzat[oa]|créée?|générée?|produite?|создан\w{0,3}|сделан\w{0,3}|сгенерирован\w{0,3})"
)
_TAKEN = r"(?:shot|recorded|captured|taken|filmed|grabad[oa]|filmad[oa]|gravad[oa]|filmée?|tournée?|снят\w?)"
_CAMERA = r"(?:camera|phone|smartphone|camcorder|dashcam|lens|person|human|people|hand|cámara|câmera|caméra|telecamera|камер\w)"

REAL = (
    "real|filmed|genuine|authentic|legit|legitimate|echt(?:e[mnrs]?)?|authentisch(?:e[mnrs]?)?|réel(?:le)?|vraie?|véritable"
    "|authentique|auténtic[oa]|autêntic[oa]|verdader[oa]|verdadeir[oa]|genuin[oa]|genuín[oa]|vero|vera|reale|autentic[oa]"
    "|gefilmt|gerçek|prawdziw[aeyi]|настоящ\\w{0,4}|реальн\\w{0,4}|подлинн\\w{0,4}"
    "|(?:ال|وال|و|ب)?(?:حقيقي|أصلي|اصلي|واقعي)\\w{0,3}"
).replace(" ", r"\s")
GENERATED = (
    r"fakes?|faked|deepfakes?|(?:ai|computer)[\s-]generation|synthetic|synthesi[sz]ed|artificial|generated|fabricated|forged|forgery|fabrication|bogus|phony"
    r"|(?:ai|computer|machine|ki|ia)[\s-](?:generated|made|created|produced|rendered|generiert\w{0,2}|erzeugt\w{0,2}|erstellt\w{0,2}"
    r"|synthesi[sz]ed)|(?<!an\s)(?:ai|cgi|ии|ia|ki)(?=\W{0,5}$)"
    r"|gefälscht(?:e[mnrs]?)?|künstlich(?:e[mnrs]?)?(?: (?:erzeugt|generiert|erstellt|hergestellt)\w{0,2})?|generiert(?:e[mnrs]?)?"
    r"|fälschung|synthetisch(?:e[mnrs]?)?|générée?|faux|fausse|synthétique|artificiel(?:le)?|truquée?|factice|fals[oa]|generad[oa]"
    r"|gerad[oa]|sintétic[oa]|sintetic[oa]|artificiale|fint[oa]|generat[oa]|sahte|fałszyw[aey]|ненастоящ\w{0,4}|неподлинн\w{0,4}"
    r"|поддельн\w{0,4}|подделк\w|сгенерирован\w{0,4}|фальшив\w{0,4}|фейк\w{0,4}|искусственн\w{0,4}|синтетическ\w{0,4}"
    r"|(?:ال|وال|و|ب)?(?:مزيف|مزور|مفبرك|مولد|اصطناعي|مصطنع)\w{0,3}"
).replace(" ", r"\s")
REAL_PHRASE = (
    rf"{_TAKEN} (?:with|on|by|using|in|con|com|avec|par|da|на) (?:an? |the |real |actual |una |uma |une |реальн\w{{1,3}} )?{_CAMERA}"
).replace(" ", r"\s")
GENERATED_PHRASE = (
    rf"{_MADE} (?:\w{{1,12}} )?(?:by|with|using|through|via|por|con|com|par|avec|da|mediante|с помощью) {_AI}"
    rf"|{_MADE} {_AI}|(?:output|product|work|creation|result) of {_AI}|(?:comes?|came|straight) (?:out of|from) {_AI}"
    rf"|(?:mit|von|durch) (?:einer |eine )?ki (?:generiert|erzeugt|erstellt|gemacht)\w{{0,2}}"
).replace(" ", r"\s")
REAL_GLYPHS = (
    r"真实|真實|真的(?![是很太不像])|真品|实拍|實拍|实际拍摄|真人拍摄|(?<=[为為是])真(?![实實的])|(?<![\u4e00-\u9fff])真(?![\u4e00-\u9fff])|本物|実写|実際(?=に撮影|の映像|の動画)"
    r"|진짜|진본|실사|실제(?=\s?(?:로\s?)?(?:촬영|영상|녹화|찍|동영상|장면)|가\s?아|입니다|이다)"
)
GENERATED_GLYPHS = r"假(?![设設如若定使期装裝日])|伪造|偽|虚(?=假)|造(?=假)|合成|(?:由)?(?:人工智能|AI)?生成|AI(?:로|가|が|に|で)?\s?(?:만든|만들|제작|作|制作|製)|人造|フェイク|作り物|捏造|가짜|위조|합성|생성|조작"

CLIP = compile_phrase_pattern(
    r"videos?|clips?|footage|recordings?|film|movie|sequence|content|it|this|that|vid[eé]os?|vídeos?|filmato|clipe"
    r"|aufnahme|es|das|ce|cette|c['\u2019]est|esto|este|видео|ролик|запись|это|(?:ال)?فيديو|هذا"
    r"|[^\W\d_]*[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af][^\W\d_]*"
)
"""Words for the clip; a doubt in a statement with one of them is a doubt about the answer."""

_NEGATION = (
    r"not|isn['\u2019]?t|wasn['\u2019]?t|nicht|kein(?:e[mnrs]?)?|no|pas|non|não|не|不|并非|不是|ليس"
)
_SMALL = (
    r"the|this|that|these|it|its|my|our|i|we|a|an|is|was|are|['\u2019]s|be|being|been|looks?|looked|like|appears?|appeared|seems?|seemed|to|as|must|of"
    r"|videos?|clips?|footage|recordings?|film|sequence|content|one|final|answer|verdict|conclusion|label|classification|judge?ment|result"
    r"|think|believe|conclude|say|judge|call|classify|consider|would|am|confident|sure|leaning|lean|towards?"
    r"|no doubt|without doubt|very|clearly|definitely|certainly|highly|likely|most|probably|almost|obviously|indeed|overall|so|thus|hence|therefore|and|but|however|because|actually"
    r"|quite|fully|entirely|completely|totally|simply|just|yes|in|short|video's|clip's"
    r"|das|dieses|dies|es|die|der|aufnahme|ist|wirkt|sieht|scheint|ich|glaube|denke|halte|für|eindeutig|wahrscheinlich|sicher|ein|eine|also|daher|sondern|aber"
    r"|el|la|este|esta|lo|vídeo|vid[eé]o|es|parece|que|creo|un|una|claramente|probablemente|muy|pero"
    r"|le|cette|ce|c['\u2019]est|n['\u2019]est|est|semble|je|pense|une|clairement|probablement|donc|mais"
    r"|il|questo|filmato|è|sembra|o|é|um|uma|penso|probabilmente|provavelmente"
    r"|видео|это|ролик|является|я|думаю|что|выглядит|скорее|всего|هذا|(?:ال)?فيديو"
)
_GAP = r"[\s\W]{0,5}"
BEFORE_LABEL = re.compile(
    rf"{_GAP}(?:[01]\s?\()?(?:(?:{_SMALL})(?![{LETTER}]){_GAP}|(?:这个?|该|此|视频|影片|片段|应该?|很|我认为|我觉得|结论|答案|所以|因此|可能性很大|是|为|この|その|動画|映像|は|이|그|영상|비디오|동영상|은|는)\s?[:：]?){{0,16}}?"
    rf"(?P<negation>(?:{_NEGATION})(?![{LETTER}]){_GAP}(?:(?:an?|the|actually|really|at\sall|eine?|une?|un|uma?|una|es|parece|è|é|является|是)(?![{LETTER}]){_GAP}){{0,3}})?",
    re.IGNORECASE,
)
"""All text before the label of a plain statement, with an optional negation directly before the label."""
AFTER_LABEL = re.compile(
    r"(?:\W{0,3}(?:videos?|clips?|footage|recordings?|film|movie|sequence|content|one|aufnahme|vid[eé]o|vídeo|видео))?"
    r"(?:的|です|である|だ|입니다|이다|视频|視頻|動画|영상)?"
    r"[\"'*)\]_`\s]{0,5}(?:$|\((?!\W{0,3}\d)|\.|\b(?:and|with|due|based|given|from|overall|throughout|rather\sthan|instead\sof|not|und|y|e|et|и)\b)",
    re.IGNORECASE,
)
"""Text after the label of a plain statement: end, a noun for the clip, or the beginning of a reason."""


FIRST_THOUGHT = compile_phrase_pattern(
    r"at first|initially|expecting|first (?:impression|glance|sight|guess|thought|instinct|impulse)|(?:i|we) (?:had |first |initially |originally |almost |nearly )*"
    r"(?:thought|assumed|suspected|leaned|expected|guessed|believed|wanted)|was (?:inclined|tempted|going|about) to|naively|superficially|on the surface",
    r"zuerst|zunächst|anfangs|auf den ersten blick|al principio|a primera vista|inicialmente|de entrada|au début|au premier abord|à première vue|d['\u2019]abord"
    r"|all['\u2019]inizio|a prima vista|inizialmente|no início|à primeira vista|a princípio|сначала|на первый взгляд|поначалу|في البداية|للوهلة الأولى",
)
FIRST_GLYPHS = re.compile(r"起初|乍一看|一开始|一開始|最初|一見|첫인상|처음에|언뜻")
SUBJECT_START = re.compile(
    r"\W{0,5}(?:(?:and|but|so|then|thus|hence|therefore|because|und|aber|daher|y|pero|et|mais|donc|e|ma|mas|и|но|поэтому)\s)?"
    r"(?:this|it|it['\u2019]s|(?:the|this)\s(?:video|clip|footage|recording)|i\s(?:think|believe|conclude|say|judge|would|consider|am)"
    r"|(?:das|dieses)\s(?:video|ist)|es\sist|(?:el|este)\s(?:vídeo|video|clip)|es\s|(?:la|cette)\svidéo|c['\u2019]est|il\svideo|è\s|o\svídeo|é\s"
    r"|видео|это|ролик|视频|这|该|此|この|動画|이|그|영상)",
    re.IGNORECASE,
)
"""Beginning of a statement that stands for itself after a comma."""
DOUBTS = compile_phrase_pattern(
    r"if|unless|were|had|whether|suppos\w{0,4}|assuming|maybe|perhaps|possibly|might|may|could|would|should|doubt\w{0,4}|nobody|no[ -]one|none|nothing|neither|never|nor"
    r"|cannot|can['\u2019]?t|(?:not|n['\u2019]t) (?:\w{1,12} ){0,3}(?:think|believe|say|call|sure|certain|convinced|know|tell|see|find|mean|prove)"
    r"|hard|difficult|impossible|unclear|unsure|uncertain|contrary|opposed|rather|instead|first|initially|claim\w{0,4}|says?|said|told|asks?|asked|question|prompt"
    r"|caption|sign|title|watermark|logo|label|no (?:evidence|reason|sign|indication|hint|proof)\w{0,3}",
    r"wenn|falls|ob|vielleicht|könnte\w?|niemand|nichts|nie|zweif\w{2,4}|glaube nicht|si|quizás?|tal vez|podría|nadie|nada|dudo|peut-être|pourrait|personne|rien|doute"
    r"|se|forse|potrebbe|nessuno|niente|talvez|poderia|ninguém|если|может|вряд|никто|ничто|не думаю|сомневаюсь|إذا|ربما|قد|لا",
)
"""Words that make a later statement of the same sentence doubtful."""


UNDOES = re.compile(
    r"\W{0,5}(?:(?:but|or|and|yet)\s)?(?:(?:it|this|that|he|she|they|they['\u2019]re|it['\u2019]s)\s?)?"
    r"(?:isn['\u2019]?t|is\snot|is\sit|not|no|nope|hardly|just\skidding|joking|nicht|aber\snicht|nein|non|pas|não|нет|不是|违う|違う|아니)\b",
    re.IGNORECASE,
)
"""Beginning of a statement after a claim that takes the claim back."""
QUALIFIES = re.compile(
    r"\W{0,5}(?:if|unless|only|except|apart|they|some|people|according|supposedly|allegedly|so\s(?:they|it)|or\s|wenn|falls|angeblich|si\s|se\s|если)\b",
    re.IGNORECASE,
)
"""Beginning of a later part of a claim's sentence that limits the claim."""


_SPELLED = (
    "zero zéro cero ноль صفر",
    "one eins uno um один واحد",
    "two zwei deux dos due dois duas два две اثنان اثنين ثانيتان ثانيتين",
    "three drei trois tres tre três три ثلاثة ثلاث",
    "four vier quatre cuatro quattro quatro четыре أربعة اربعة أربع",
    "five fünf cinq cinco cinque пять خمسة خمس",
    "six sechs seis sei шесть ستة",
    "seven sieben sept siete sette sete семь سبعة",
    "eight acht huit ocho otto oito восемь ثمانية",
    "nine neun neuf nueve nove девять تسعة",
    "ten zehn dix diez dieci dez десять عشرة",
)
_GLYPHS = {
    **{glyph: n for n, glyph in enumerate("零一二三四五六七八九十")},
    "〇": 0, "两": 2, "兩": 2, "壱": 1, "弐": 2, "参": 3,
    "일": 1, "이": 2, "삼": 3, "사": 4, "오": 5, "한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "여섯": 6,
}  # fmt: skip
_VALUES = {word: n for n, words in enumerate(_SPELLED) for word in words.split()}
_WORD = re.compile(
    rf"(?<![{LETTER}])(?:{'|'.join(sorted(_VALUES, key=len, reverse=True))})(?!['\u2019]?[{LETTER}])",
    re.IGNORECASE,
)
_GLYPH = re.compile(
    rf"(?<![{''.join(set(''.join(_GLYPHS)))}])(?P<glyph>{'|'.join(_GLYPHS)})(?=\s?(?:秒|分|点|點|星|級|级|점|초))"
)


def replace_number_words(text: str) -> str:
    """Replace number words from zero to ten by digits; CJK ones only if alone or before a unit."""
    if (alone := text.strip()) in _GLYPHS:
        return str(_GLYPHS[alone])
    plain = _WORD.sub(lambda word: str(_VALUES[word[0].lower()]), text)
    return _GLYPH.sub(lambda glyph: str(_GLYPHS[glyph["glyph"]]), plain)


TRUTH = re.compile(
    r"\W{0,3}(?:(?P<no>false|no|nein|non|não|нет|否|いいえ|아니오|لا)|true|yes|ja|sí|oui|sì|sim|да|是|はい|예|네|نعم)\W{0,3}",
    re.IGNORECASE,
)
CORRECTS = re.compile(
    r"(?:^|(?<=[.!\n\u2014]))[\s*_-]{0,5}(?:hm+|wait|hold\son|actually|correction|scratch\sthat|on\s(?:second|closer|reflection|re)|i\s(?:change|take\s(?:it|that)\sback|retract"
    r"|was\swrong|correct|revise)|let\sme\s(?:correct|revise|reconsider)|looking\s(?:again|closer)|edit|update|moment|korrektur|corrección|correction|更正|等等|訂正|정정)\b",
    re.IGNORECASE,
)
