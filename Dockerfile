# Build the wheel and its environment where compilers may be; run it where nothing but Python is.
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md ./
COPY convmem ./convmem
RUN python -m venv /convmem && /convmem/bin/pip install --no-cache-dir '.[s3]'

FROM python:3.12-slim
RUN useradd --uid 10001 --no-create-home --home-dir /data convmem && install -d -o 10001 -g 10001 -m 0700 /data /backups
COPY --from=build /convmem /convmem
COPY --chmod=0755 deploy/entrypoint.sh /entrypoint.sh
ENV PATH=/convmem/bin:$PATH CONVMEM_DATA_DIR=/data PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8484
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["/convmem/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8484/healthz', timeout=4)"]
ENTRYPOINT ["/entrypoint.sh"]
CMD ["serve", "--bind", "0.0.0.0:8484"]
