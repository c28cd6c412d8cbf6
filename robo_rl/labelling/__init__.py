"""Labels of preferences and success: queries, labellers (person, VLM, scripted), page, store.

May import: learners, runs, runtime, vision.
"""
