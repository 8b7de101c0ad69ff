# Targets: cli, desk, reward, label-studio. docs/deploy.md says which lines were executed.
# BASE is Debian bookworm with its digest, debian:bookworm-slim@sha256:...; docs/deploy.md says how to find it.
ARG BASE
FROM ${BASE} AS base
ARG BASE
RUN case "$BASE" in *@sha256:*) ;; *) echo "BASE must end with @sha256:DIGEST, got $BASE" >&2; exit 1 ;; esac
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bubblewrap ca-certificates curl libseccomp2 openssh-client openssl python3-venv wget && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home unreel && python3 -m venv /opt/unreel
ENV PATH=/opt/unreel/bin:/opt/uv/bin:$PATH
# The tag of a release; the sources in the image have no history to read it from.
ARG VERSION=0.1.0.dev0
ENV SETUPTOOLS_SCM_PRETEND_VERSION_FOR_UNREEL=$VERSION
COPY . /src
# Every package by the hashes of constraints/, as in the checks: a package that is not listed there ends the build.
RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir --no-deps --require-hashes -r /src/constraints/uv.txt
ENV VIRTUAL_ENV=/opt/unreel
ENV UV_CONSTRAINT="/src/constraints/base.txt /src/constraints/test.txt /src/constraints/dev.txt /src/constraints/image.txt"
ENV UV_REQUIRE_HASHES=1
ENV UV_NO_CACHE=1
ENV UV_COMPILE_BYTECODE=1
RUN uv venv /opt/tools && UV_CONSTRAINT= uv pip install --python /opt/tools --no-deps -r /src/constraints/tools.txt && cd /src && /opt/tools/bin/hatchling build -t wheel -d /opt/wheels && rm -rf /opt/tools
# pdqhash has no wheel for Debian's Python: it is compiled once, and the compiler is removed.
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ python3-dev && sed -n '/^pdqhash==/,/[^\\]$/p' /src/constraints/dev.txt > /opt/pdqhash.txt && uv pip install --no-deps --build-constraints /src/constraints/base.txt --build-constraints /src/constraints/tools.txt -r /opt/pdqhash.txt && apt-get purge -y --auto-remove g++ python3-dev && rm -rf /var/lib/apt/lists/*

# Also the image of deploy/kubernetes: KubeRay needs Ray's dashboard and wget.
FROM base AS cli
RUN sed -n '/^ray==/,/[^\\]$/p' /src/constraints/dev.txt | sed 's/^ray==/ray[default]==/' > /opt/ray.txt && uv pip install -r /src/pyproject.toml --extra curate --extra ray --extra review --extra reward -r /opt/ray.txt && pip install --no-deps --no-index /opt/wheels/*.whl && rm -rf /src
USER unreel
WORKDIR /home/unreel
ENTRYPOINT ["unreel"]
CMD ["--help"]

FROM base AS desk
RUN uv pip install -r /src/pyproject.toml --extra desk && pip install --no-deps --no-index /opt/wheels/*.whl && rm -rf /src
RUN install -d -o unreel -g unreel /srv/unreel/cases
USER unreel
WORKDIR /srv/unreel
VOLUME /srv/unreel/cases
EXPOSE 8070
ENTRYPOINT ["unreel", "desk", "--no-browser"]
CMD ["--config", "/etc/unreel/desk.toml", "--cases", "/srv/unreel/cases", "--host", "0.0.0.0"]

FROM base AS reward
RUN uv pip install -r /src/pyproject.toml --extra ray --extra reward && pip install --no-deps --no-index /opt/wheels/*.whl && rm -rf /src
RUN install -d -o unreel -g unreel /srv/unreel
USER unreel
WORKDIR /srv/unreel
EXPOSE 8060
ENTRYPOINT ["unreel", "reward", "serve"]
CMD ["--help"]

FROM base AS label-studio
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-client && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/label-studio && /opt/label-studio/bin/pip install --no-cache-dir --no-deps --require-hashes -r /src/constraints/studio.txt
RUN uv pip install -r /src/pyproject.toml --extra annotate --extra curate && pip install --no-deps --no-index /opt/wheels/*.whl && rm -rf /src
RUN install -d -o unreel -g unreel /srv/unreel/state
USER unreel
WORKDIR /srv/unreel
ENV UNREEL_STATE=/srv/unreel/state
VOLUME /srv/unreel/state
EXPOSE 8080
ENTRYPOINT ["unreel", "annotate", "up", "--program", "/opt/label-studio/bin/label-studio"]
CMD ["--host", "0.0.0.0"]
