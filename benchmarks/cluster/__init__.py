"""What a cluster does to the service: three PostgreSQL nodes under Patroni, two API processes and an
importer under load, and one calamity after the other.

    make cluster [ARGS="--events switchover,kill-node"]

Everything that was acknowledged is held against what is stored; anything lost or doubled ends the
drill with 1. Needs Linux, and Patroni from requirements/cluster.txt.
"""
