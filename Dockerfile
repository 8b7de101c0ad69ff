# Targets: cli, desk, reward, label-studio. docs/deploy.md says which lines were executed.
FROM debian:bookworm-slim AS base
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bubblewrap ca-certificates curl libseccomp2 openssh-client python3-venv wget && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home unreel && python3 -m venv /opt/unreel
ENV PATH=/opt/unreel/bin:$PATH
# The tag of a release; the sources in the image have no history to read it from.
ARG VERSION=0.1.0.dev0
ENV SETUPTOOLS_SCM_PRETEND_VERSION_FOR_UNREEL=$VERSION
COPY . /src
# Versions as in the checks: constraints without their hashes, which pip takes for no folder.
RUN sed -n 's/^\([A-Za-z0-9._-]*==[^ ]*\) .*/\1/p' /src/constraints/base.txt /src/constraints/test.txt /src/constraints/dev.txt > /opt/pins.txt
# pdqhash has no wheel for Debian's Python: it is compiled once, and the compiler is removed.
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ python3-dev && pip wheel --no-cache-dir --no-deps -c /opt/pins.txt -w /opt/wheels pdqhash && apt-get purge -y --auto-remove g++ python3-dev && rm -rf /var/lib/apt/lists/*
ENV PIP_FIND_LINKS=/opt/wheels

# Also the image of deploy/kubernetes: KubeRay needs Ray's dashboard and wget.
FROM base AS cli
RUN pip install --no-cache-dir -c /opt/pins.txt '/src[arena,curate,ray,report,review,reward]' 'ray[default]' && rm -rf /src
USER unreel
WORKDIR /home/unreel
ENTRYPOINT ["unreel"]
CMD ["--help"]

FROM base AS desk
RUN pip install --no-cache-dir -c /opt/pins.txt '/src[desk]' && rm -rf /src
RUN install -d -o unreel -g unreel /srv/unreel/cases
USER unreel
WORKDIR /srv/unreel
VOLUME /srv/unreel/cases
EXPOSE 8070
ENTRYPOINT ["unreel", "desk", "--no-browser"]
CMD ["--config", "/etc/unreel/desk.toml", "--cases", "/srv/unreel/cases", "--host", "0.0.0.0"]

FROM base AS reward
RUN pip install --no-cache-dir -c /opt/pins.txt '/src[ray,reward]' && rm -rf /src
RUN install -d -o unreel -g unreel /srv/unreel
USER unreel
WORKDIR /srv/unreel
EXPOSE 8060
ENTRYPOINT ["unreel", "reward", "serve"]
CMD ["--help"]

FROM base AS label-studio
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-client && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/label-studio && /opt/label-studio/bin/pip install --no-cache-dir --no-deps --require-hashes -r /src/constraints/studio.txt
RUN pip install --no-cache-dir -c /opt/pins.txt '/src[annotate,curate,report]' && rm -rf /src
RUN install -d -o unreel -g unreel /srv/unreel/state
USER unreel
WORKDIR /srv/unreel
ENV UNREEL_STATE=/srv/unreel/state
VOLUME /srv/unreel/state
EXPOSE 8080
ENTRYPOINT ["unreel", "annotate", "up", "--program", "/opt/label-studio/bin/label-studio"]
CMD ["--host", "0.0.0.0"]
