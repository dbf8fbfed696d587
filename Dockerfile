# perfquarry with what its workers use of Debian; see docs/workers.md.
FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap build-essential ca-certificates ccache gfortran git make ninja-build pkg-config \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home --uid 1000 perfquarry \
    && install -d -o perfquarry /home/perfquarry/var /opt/perfquarry
WORKDIR /opt/perfquarry
USER perfquarry
COPY --chown=perfquarry . .
RUN make setup
ENV PATH=/opt/perfquarry/.venv/bin:$PATH \
    PERFQUARRY_HOME=/home/perfquarry/var \
    DO_NOT_TRACK=1
CMD ["perfquarry", "--help"]
