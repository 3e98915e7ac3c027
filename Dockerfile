# Operant in a container; docs/howto/service.md says how to run it.
#   docker build --tag operant .

FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
COPY sdk ./sdk
# The pins are those that the tests ran with.
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && python -m venv /opt/operant \
    && /opt/operant/bin/pip install --no-cache-dir --constraint constraints.txt \
        "$(echo /wheels/operant-*.whl)[speed,web,files]"

FROM python:3.11-slim-bookworm
# Versions are not pinned: Debian keeps only the newest of each, with its security fixes.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap poppler-utils ripgrep \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 operant \
    && useradd --uid 10001 --gid operant --create-home --shell /bin/bash operant \
    && install --directory --owner=operant --group=operant --mode=0700 /home/operant/.operant
COPY --from=build /opt/operant /opt/operant
ENV PATH=/opt/operant/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    OPERANT_HOME=/home/operant/.operant
# The user `operant`, by number: so whoever runs the image can see that it is not root.
USER 10001:10001
WORKDIR /home/operant
VOLUME /home/operant/.operant
EXPOSE 8000
# The standard library is there anyway, curl is not; a proxy that the environment names is not asked about ourselves.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener as opener; opener(ProxyHandler({})).open('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["operant"]
# All addresses and no TLS, because the container's network is the border: publish the port to your own machine only,
# `--publish 127.0.0.1:8000:8000`, or put a proxy with TLS in front. As process 1 the supervisor buries orphans too.
CMD ["serve", "--supervised", "--host", "0.0.0.0", "--insecure"]
