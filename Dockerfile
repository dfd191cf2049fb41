# syntax=docker/dockerfile:1
# How to run the image: docs/deploy/README.md

ARG RUST=1.95
FROM rust:${RUST}-slim-bookworm AS build
WORKDIR /source
COPY . .
# `release` and `dev` build faster, but a slower binary.
ARG PROFILE=dist
# The commit that is built: the image has no git to find it.
ARG EXPERTISE_COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo install --locked --no-track --profile "${PROFILE}" --path . --root /image/usr/local \
    && install -D -m 644 LICENSE /image/usr/share/doc/expertise/copyright \
    && install -d /image/var/lib/expertise

# Has a C library and root certificates, but no shell.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /image/usr/ /usr/
COPY --from=build --chown=65532:65532 /image/var/lib/expertise /var/lib/expertise
# The directory of an SQLite database. With PostgreSQL nothing is written here.
WORKDIR /var/lib/expertise
VOLUME /var/lib/expertise
# On this address the service starts only if EXPERTISE_AUTH is set.
ENV EXPERTISE_LISTEN=0.0.0.0:50051
EXPOSE 50051
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 \
    CMD ["expertise", "health"]
ENTRYPOINT ["expertise"]
