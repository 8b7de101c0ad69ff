"""Parser of named fields in an answer: JSON, tables, headings and lines such as `Verdict: ...`.

Field names are known in all languages that reviewers answer in. The value of a field is the
answer; explanations in other fields do not contradict it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Literal

Kind = Literal["label", "score", "place", "time", "reason", "real"]

_NAMES: Mapping[Kind, str] = {
    "label": (
        "verdict|label|answer|conclusion|judge?ment|classification|decision|prediction|determination|assessment|result|outcome|finding"
        "|authenticity|response|ruling|call|urteil|ergebnis|antwort|fazit|einschätzung|entscheidung|schlussfolgerung|veredicto|respuesta"
        "|conclusión|etiqueta|resultado|dictamen|réponse|étiquette|jugement|résultat|décision|risposta|verdetto|conclusione|giudizio|etichetta"
        "|esito|resposta|veredito|conclusão|rótulo|вердикт|ответ|вывод|заключение|метка|решение|итог|الإجابة|الاجابة|الحكم|الجواب|الاستنتاج|الخلاصة"
        "|答案|结论|結論|判断|判定|回答|答え|標籤|标签|결론|정답|판정|답변|답|판단"
    ),
    "score": (
        "score|overall|realism|quality|realism score|rating|rated|grade|points|mark|stars|bewertung|wertung|punktzahl|punkte|note|puntuación|puntaje|calificación|nota|valoración|évaluation"
        "|punteggio|voto|valutazione|pontuação|avaliação|оценка|балл|баллы|рейтинг|التقييم|الدرجة|النتيجة|评分|得分|分数|打分|总分|評分|分數|評価|スコア|点数|得点|점수|평점|평가"
    ),
    "place": (
        "area|box|bounding box|bbox|bbox 2d|box 2d|coordinates?|region|location|position|where|koordinaten|bereich|coordenadas|coordonnées|coordinate|zona|área"
        "|координаты|область|坐标|位置|区域|座標|領域|좌표|위치|영역|الإحداثيات"
    ),
    "time": (
        "start|start time|starttime|start s|start seconds|starting time|onset|first appears|first appears at|first seen|first seen at|appears at|starting at|onset time|onset s|onset seconds|time s|starts at|begins at|time|timestamp|when|begin|first visible|startzeit|beginn|zeit|zeitpunkt|inicio|tiempo"
        "|tiempo de inicio|hora de inicio|début|temps|inizio|tempo|início|tempo de início|начало|время|время начала|开始时间|起始时间|时间|開始時間|開始時刻|時間|시작 시간|시작|시간|وقت البدء|البداية"
    ),
    "reason": (
        "why|explanation|reason|reasons|reasoning|rationale|justification|evidence|analysis|details|description|notes|observations?|think|thoughts?|problem description|standard adherence"
        "|comment|comments|erklärung|begründung|explicación|razón|motivo|explication|raison|spiegazione|ragione|explicação|объяснение|причина|обоснование|解释|原因|理由|分析|说明|説明|根拠|설명|이유|근거|التفسير|السبب"
    ),
    "real": (
        "real video|real clip|the real video|real one|which video is real|which is real|real|choice|selection|selected|selected video|chosen video|correct video|pick|chosen|choice of video|winner|echtes video|video real|vidéo réelle"
        "|elección|choix|scelta|escolha|auswahl|выбор|选择|選択|선택|真实视频|الاختيار"
    ),
}  # fmt: skip
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split("|")} | {
    "judgment": "label",
    "judgement": "label",
    "coordinate": "place",
    "coordinates": "place",
    "observation": "reason",
    "thought": "reason",
}
_FIRST = re.compile(
    r"initial|first|preliminary|draft|tentative|previous|old|erste|inicial|initiale|iniziale|初步|最初",
    re.IGNORECASE,
)
_LAST = re.compile(
    r"final|corrected|revised|updated|overall|total|endg|gesamt|global|complessiv|итог|общ|最终|最終|综合|総合|總|总|최종|종합|النهائي",
    re.IGNORECASE,
)
_QUALIFIED = (
    r"(?:my|the|final|overall|total|corrected|revised|updated|initial|first|preliminary|tentative|realism|realness|quality|video|unnatural|affected|suspicious|anomalous|mein[e]?|finale[srn]?|endgültige[srn]?"
    r"|gesamt|mi|final|global|general|ma|mon|finale|globale|la|le|el|il|mia|minha|a|o|общая|итоговая|итоговый|моя|мой|最终|最終|综合|総合|整体|总体|最终的|我的|최종|종합|전체|النهائية|النهائي)"
)
_ANY_NAME = "|".join(
    sorted((name.replace(" ", r"[\s_-]{1,2}") for names in _NAMES.values() for name in names.split("|")), key=len, reverse=True)
)  # fmt: skip
_HEAD = re.compile(
    rf"(?:^|(?<=\n)|(?<=[.!?;。]\s)|(?<=。))(?P<marks>[#>*_\-\u2022\s\"'`\d.)\[(【]{{0,12}})(?P<qualified>(?:{_QUALIFIED}[\s_-]?){{0,3}})"
    rf"(?P<name>{_ANY_NAME})(?P<ending>\s(?:final|finale|global|geral|total|globale|complessiv[oa]|générale?))?(?P<closing>[\s*_\"'`)\]】]{{0,8}})"
    r"(?P<sign>[:=]|(?<=\s)[-\u2013\u2014](?=\s)|是|为|は|\n|$)[\s*_\"'`>]{0,8}",
    re.IGNORECASE,
)
_YES_NO_LINE = re.compile(
    r"^[\s*_#>-]{0,8}(?P<name>[\w -]{2,30}?)[\s*_?]{0,5}:[\s*_]{0,5}(?P<value>(?:true|false|yes|no|ja|nein|sí|oui|non|да|нет)[\s*_.!]{0,5})$",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(rf"<(?P<closes>/?)(?P<name>{_ANY_NAME})>", re.IGNORECASE)
_PAIR = re.compile(
    r"[\"'](?P<name>\w{1,40})[\"']\s{0,3}:\s{0,3}(?P<value>\"[^\"]{0,2000}\"|'[^']{0,2000}'|\[[^\]]{0,200}\]|[^,{}\n\"']{1,200})"
)
_OPENS_JSON = re.compile(r"^\s{0,8}[{\[]", re.MULTILINE)
_MAX_TRIES = 3
_RULE = re.compile(r"[\s|:+-]+")
_LONGEST = 20_000
"""Maximum number of characters of a text that is searched for fields; longer texts count as prose."""
_N_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A named field of an answer, with its value without surrounding punctuation."""

    name: str
    kind: Kind | None
    value: str

    @property
    def is_last_word(self) -> bool:
        """Return whether the name of a field calls its answer final, so that it takes precedence."""
        return _LAST.search(self.name) is not None

    @property
    def is_first_thought(self) -> bool:
        """Return whether the name of a field calls its answer preliminary."""
        return _FIRST.search(self.name) is not None


@lru_cache(maxsize=4)
def parse_answer_fields(text: str) -> tuple[AnswerField, ...]:
    """Return the named fields of an answer in order; of several JSON objects, only the first is read."""
    if len(text) > _LONGEST:
        return ()
    if pairs := find_first_json_object(text):
        return tuple(_iter_object_fields(pairs))
    rows = parse_markdown_tables(text)
    lines = "\n".join("" if _is_table_row(line) else line for line in text.splitlines())
    return (
        *(_iter_table_fields(rows) if rows else ()),
        *_iter_line_fields(
            _TAG.sub(lambda tag: "\n" if tag["closes"] else f"\n{tag['name']}: ", lines)
        ),
        *(AnswerField(m["name"], None, m["value"]) for m in _YES_NO_LINE.finditer(lines)),
    )


def get_field_values(fields: Sequence[AnswerField], *kinds: Kind) -> list[str]:
    """Return an answer's field values of these kinds; only final ones if some are named final."""
    filled = [field for field in fields if field.kind in kinds and field.value]
    final = [field for field in filled if field.is_last_word]
    return [
        field.value for field in final or [field for field in filled if not field.is_first_thought]
    ]


def find_first_json_object(text: str) -> Mapping[str, Any]:
    """Return the first JSON object in `text`, as far as its pairs can be read; empty if there is none."""
    bare = text.strip()
    for opening in islice(_OPENS_JSON.finditer(bare), _MAX_TRIES):
        source = bare[opening.end() - 1 :]
        try:
            value, _ = json.JSONDecoder().raw_decode(source)
        except (ValueError, RecursionError):
            value = {
                pair["name"]: _strip_decoration(pair["value"]) for pair in _PAIR.finditer(source)
            }
            value = value if source.startswith("{") else {}
        while isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict) and value:
            return value
    return {}


def format_json_value(value: object) -> str:
    """Return a JSON value as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parse_markdown_tables(text: str) -> list[list[str]]:
    """Return the rows of all Markdown tables in `text` as lists of cells, without separator rows."""
    lines = [line.strip() for line in text.splitlines() if _is_table_row(line)]
    return [
        [_strip_decoration(cell) for cell in line.strip("|").split("|")]
        for line in lines
        if not _RULE.fullmatch(line)
    ]


def _is_table_row(line: str) -> bool:
    return line.count("|") >= _N_COLUMNS


def get_field_kind(name: str) -> Kind | None:
    """Return the kind of answer field, such as "label", that a field name means; `None` if unknown."""
    head = _HEAD.match(f"{_strip_decoration(name.replace('_', ' ')).strip()}:")
    return _find_field_kind(head["name"]) if head and head.end() > len(name.strip()) else None


def _iter_object_fields(pairs: Mapping[str, Any]) -> Iterator[AnswerField]:
    for name, value in pairs.items():
        if isinstance(value, dict) and get_field_kind(str(name)) in {None, "label"}:
            yield from _iter_object_fields(
                {key: inner for key, inner in value.items() if inner is not value}
            )
        else:
            text = "" if value is None else format_json_value(value)
            yield AnswerField(str(name), get_field_kind(str(name)), text.strip())


def _iter_table_fields(rows: Sequence[Sequence[str]]) -> Iterator[AnswerField]:
    heads = rows[0]
    if len(rows) == _N_COLUMNS and any(get_field_kind(head) for head in heads):
        yield from (
            AnswerField(name, get_field_kind(name), value)
            for name, value in zip(*rows, strict=False)
        )
    elif len(heads) == _N_COLUMNS:
        for row in rows:
            if len(row) == _N_COLUMNS:
                yield AnswerField(row[0], get_field_kind(row[0]), row[1])


def _iter_line_fields(text: str) -> Iterator[AnswerField]:
    # Followed by a colon or sign, or a heading or bold.
    heads = [
        head
        for head in _HEAD.finditer(text)
        if head["sign"].strip() or any(mark in head["marks"] for mark in ("#", "**", "【"))
    ]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        kind = _find_field_kind(head["name"])
        value = text[head.end() : end].strip()
        if kind != "reason":
            value = value.partition("\n")[0]
        name = f"{head['qualified']}{head['name']}{head['ending'] or ''}"
        yield AnswerField(name, kind, _strip_decoration(value))


def _find_field_kind(name: str) -> Kind | None:
    return _KINDS.get(re.sub(r"[\s_-]+", " ", name.lower()))


def _strip_decoration(value: str) -> str:
    return value.strip().strip("*_`\"'| ").strip()
