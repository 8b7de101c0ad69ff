"""One question to one reviewer: look up the stored answer, claim, ask, check, store.

Where to look:
    `asker.py`: sends questions, and finds stored answers.
    `answer_store.py`: the interface of a store of answers, and one in memory.
    `answer_table.py`: answers in a Lance table.
    `sql_answers.py`: answers in SQLite or PostgreSQL.
"""
