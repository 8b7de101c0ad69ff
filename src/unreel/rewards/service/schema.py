"""Schemas of the request and reply bodies of the reward service's HTTP API."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from unreel.webapp.refusals import InvalidRequestError

Body = TypeVar("Body", bound=BaseModel)
_TEXT = 4096
_PROMPT = 20_000


class VideoSource(BaseModel):
    """Clip of a request, in exactly one of five forms; `fps` belongs to `array`."""

    model_config = ConfigDict(extra="forbid")
    data: str | None = Field(default=None, description="Video file in base64.")
    upload: str | None = Field(default=None, description="Name of a file part of the request.")
    array: str | None = Field(
        default=None,
        description="Base64 of npy or safetensors: uint8 (T, C, H, W) or (T, H, W, C).",
    )
    fps: float | None = Field(
        default=None, gt=0, le=240, description="Frames per second of `array`."
    )
    path: str | None = Field(default=None, max_length=_TEXT, description="Below an allowed root.")
    url: str | None = Field(default=None, max_length=_TEXT, description="At an allowed host.")

    @model_validator(mode="after")
    def _require_one(self) -> "VideoSource":
        forms = (self.data, self.upload, self.array, self.path, self.url)
        if sum(form is not None for form in forms) != 1 or (self.array is None) != (
            self.fps is None
        ):
            raise ValueError("give exactly one of data, upload, array (with fps), path, url")
        return self


class ItemRequest(BaseModel):
    """One clip to score, with its id, prompt, training step and group."""

    model_config = ConfigDict(extra="forbid")
    video: VideoSource
    id: str | None = Field(default=None, max_length=_TEXT)
    prompt: str | None = Field(default=None, max_length=_PROMPT)
    step: int | None = Field(default=None, ge=0, le=10_000_000)
    group: str | None = Field(default=None, max_length=_TEXT)


class BatchRequest(BaseModel):
    """Request to score or compare several clips before a deadline."""

    model_config = ConfigDict(extra="forbid")
    items: list[ItemRequest] = Field(min_length=1)
    deadline_s: float = Field(default=30.0, gt=0, le=86_400)


class FailureResponse(BaseModel):
    """Reason why an item has no reward, or why a request is refused."""

    reason: str
    message: str


class ErrorResponse(BaseModel):
    """Body of the reply to a refused request."""

    error: FailureResponse


class ResultResponse(BaseModel):
    """Reward of one item with its parts and verdicts, or its failure."""

    id: str | None
    reward_id: str
    value: float | None = Field(ge=0, le=1)
    calibrated: bool
    parts: dict[str, float]
    verdicts: list[dict[str, Any]]
    failure: FailureResponse | None
    map: str | None


class BatchResponse(BaseModel):
    """Reply with the rewards of all items, in the order of the request."""

    formula: str
    results: list[ResultResponse]


class ComparisonResponse(BaseModel):
    """Result of the comparison of two items; `preferred` is null for a tie and for a failure."""

    first: int
    second: int
    preferred: str | None
    failure: FailureResponse | None


class WinRateResponse(BaseModel):
    """Win rate of one item over its comparisons with readable answers."""

    id: str | None
    value: float | None = Field(ge=0, le=1)
    n_compared: int
    failure: FailureResponse | None


class ComparedResponse(BaseModel):
    """Reply with the comparisons of all pairs of items in a request, and the win rate of each item."""

    formula: str
    comparisons: list[ComparisonResponse]
    results: list[WinRateResponse]


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": text}
    for status, text in {
        400: "Malformed request.",
        401: "Missing or unknown token.",
        403: "Token without the scope.",
        408: "Upload too slow.",
        413: "Request too large.",
        415: "Unsupported media type.",
        422: "Invalid request.",
        429: "Limit reached; see Retry-After.",
        503: "Stopping, or stopped by a guard.",
    }.items()
}


def parse_request_body(model: type[Body], body: bytes) -> Body:
    """Parse the JSON body of a request as an object of the class `model`.

    Raises:
        RequestRefusedError: The body is no JSON, or it does not match the schema of `model`.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequestError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def build_request_body_schema() -> dict[str, Any]:
    """Return the OpenAPI description of a request body: JSON, or multipart with uploaded files."""
    reference = {"$ref": "#/components/schemas/BatchRequest"}
    form = {
        "type": "object",
        "properties": {"request": reference},
        "required": ["request"],
        "additionalProperties": {"type": "string", "format": "binary"},
    }
    content = {
        "application/json": {"schema": reference},
        "multipart/form-data": {
            "schema": form,
            "encoding": {"request": {"contentType": "application/json"}},
        },
    }
    return {"requestBody": {"required": True, "content": content}}
