"""Cache of answers and rewards in SQLite or PostgreSQL, which all replicas of a service share."""

from contextlib import suppress

from sqlalchemy import Column, MetaData, Table, Text, insert, select
from sqlalchemy.exc import IntegrityError

from unreel.asking.sql_answers import SqlAnswerStore

_TABLES = MetaData()
_REWARDS = Table(
    "reward_results",
    _TABLES,
    Column("reward_id", Text, primary_key=True),
    Column("document", Text, nullable=False),
)


class SqlRewardStore(SqlAnswerStore):
    """Database of cached answers and rewards; its methods block and may be called in any thread.

    Args:
        address: Path of an SQLite file, or `postgresql://...`.
        lease_s: Seconds without a heartbeat after which a process counts as ended.
        ask_once: Whether an interrupted question is never asked again.
    """

    def __init__(self, address: str, *, lease_s: float = 15.0, ask_once: bool = False) -> None:
        super().__init__(address, lease_s=lease_s, ask_once=ask_once)
        self.create_tables(_TABLES)

    def read_reward(self, reward_id: str) -> str | None:
        """Return the stored JSON of the reward with this id; `None` if there is none."""
        query = select(_REWARDS.c.document).where(_REWARDS.c.reward_id == reward_id)
        with self.engine.connect() as connection:
            document: str | None = connection.execute(query).scalar()
        return document

    def write_reward(self, reward_id: str, document: str) -> None:
        """Store the JSON of a reward; a reward that is already stored stays."""
        with suppress(IntegrityError):
            self.change(insert(_REWARDS).values(reward_id=reward_id, document=document))
