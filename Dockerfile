# Penstock as a container: takes the place of `image: redis:8` in a compose file.

ARG PYTHON=3.13

# Here, not in the slim image, is the C compiler that makes the whole build. It takes five minutes of processor time;
# `--build-arg PENSTOCK_COMPILE=core` takes a quarter, with 0 the image runs the plain source.
FROM python:${PYTHON} AS build
WORKDIR /src
ARG PENSTOCK_COMPILE=all
RUN python3 -m venv /opt/penstock
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY packaging/compiling.py packaging/core_modules.txt ./packaging/
COPY penstock ./penstock
COPY pyspark_penstock ./pyspark_penstock
RUN /opt/penstock/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[lua,metrics,console]' \
    && /opt/penstock/bin/python -m pip uninstall --yes pip

FROM python:${PYTHON}-slim
# 999 is who the official image runs as: a volume of its own needs no new owner.
RUN groupadd --system --gid 999 penstock \
    && useradd --system --uid 999 --gid penstock --home-dir /data --no-create-home penstock \
    && apt-get update \
    && apt-get install --yes --no-install-recommends redis-tools \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/penstock /opt/penstock
COPY --chmod=755 packaging/entrypoint packaging/healthcheck packaging/redis-server /usr/local/bin/
RUN ln -s /opt/penstock/bin/penstock /usr/local/bin/penstock \
    && mkdir /data \
    && chown penstock:penstock /data
ENV PYTHONUNBUFFERED=1
LABEL org.opencontainers.image.title="Penstock" \
    org.opencontainers.image.description="A stream server that speaks the Redis protocol" \
    org.opencontainers.image.licenses="BSD-3-Clause" \
    org.opencontainers.image.version="0.1.0"
WORKDIR /data
VOLUME /data
EXPOSE 6379
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --retries=3 --start-period=60s --start-interval=250ms CMD ["healthcheck"]
ENTRYPOINT ["entrypoint"]
CMD ["redis-server"]
