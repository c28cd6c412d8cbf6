"""The process that owns an arm's port, its client, and the mailbox between them.

May import: arms, core, drivers, safety/stages.
"""
