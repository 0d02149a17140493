"""Search resumes: the words of a resume and the queries for them, without store or SQL."""
