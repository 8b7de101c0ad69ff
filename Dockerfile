# Not run in our checks: see docs/desk.md.
FROM python:3.12-slim AS base
RUN apt-get update && apt-get install -y --no-install-recommends libseccomp2 openssh-client && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home unreel

FROM base AS desk
COPY . /src
RUN pip install --no-cache-dir '/src[desk]' && rm -rf /src
USER unreel
WORKDIR /home/unreel
VOLUME /home/unreel/desk-cases
EXPOSE 8070
ENTRYPOINT ["unreel", "desk", "--no-browser"]
CMD ["--config", "/etc/unreel/desk.toml", "--host", "0.0.0.0"]
