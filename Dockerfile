# One static program on an empty base. docs/image.md explains how to build, check and mirror the image.
#
# Compile the program in the image build, from a checkout alone:
#
#   buildah build .
#
# image/build builds the last stage alone, with programs that are already built and tested, and pulls nothing.

# The digest is that of the index of all architectures.
FROM docker.io/library/rust:1.89-bookworm@sha256:948f9b08a66e7fe01b03a98ef1c7568292e07ec2e4fe90d88c07bb14563c84ff AS program
WORKDIR /src
COPY . .
RUN image/static cargo build --release --locked && cp target/*/release/argocd-ocm-cmp /

FROM scratch
ARG VERSION=unreleased
LABEL org.opencontainers.image.title="argocd-ocm-cmp" \
      org.opencontainers.image.description="GitOps by pull: Argo CD Applications delivered to managed clusters as Open Cluster Management ManifestWorks" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/argocd-ocm-cmp/argocd-ocm-cmp" \
      org.opencontainers.image.version="${VERSION}"
# The sidecar finds kustomize and helm on the PATH, and not every runtime sets a default.
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY --from=program --chmod=0555 /argocd-ocm-cmp /usr/local/bin/argocd-ocm-cmp
USER 999:999
ENTRYPOINT ["/usr/local/bin/argocd-ocm-cmp"]
