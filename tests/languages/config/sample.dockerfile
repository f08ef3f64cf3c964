# syntax=docker/dockerfile:1
ARG VERSION=3.12

# Builds the wheel.
FROM --platform=linux/amd64 python:${VERSION} AS build
RUN pip wheel .

from python:3.12-slim
COPY --from=build /wheels /wheels
CMD ["shop"]
