"""Operations that transfer data: copies, backups, restores, and account files."""
