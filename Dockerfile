FROM rust:1.95-bookworm AS build
WORKDIR /layerfit
COPY . .
RUN cargo build --release --locked

FROM debian:bookworm-slim
RUN useradd --system --create-home --home-dir /var/lib/layerfit layerfit
COPY --from=build /layerfit/target/release/layerfit /usr/local/bin/layerfit
USER layerfit
WORKDIR /var/lib/layerfit
VOLUME /var/lib/layerfit
EXPOSE 8080
# Whether the service answers; no client is installed, and bash opens connections by itself.
HEALTHCHECK CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["/usr/local/bin/layerfit"]
CMD ["serve", "--database", "sqlite:///var/lib/layerfit/layerfit.db", "--listen", "0.0.0.0:8080"]
