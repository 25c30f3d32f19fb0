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
HEALTHCHECK CMD ["/usr/local/bin/layerfit", "--version"]
ENTRYPOINT ["/usr/local/bin/layerfit"]
CMD ["serve", "--database", "sqlite:///var/lib/layerfit/layerfit.db", "--listen", "0.0.0.0:8080"]
