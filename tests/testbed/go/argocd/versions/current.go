//go:build !argocd3_2

// Package versions has the declarations of Argo CD that differ between its versions.
package versions

import (
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/tls"
)

// HealthStatus is the health of an object.
type HealthStatus = health.HealthStatus

// ResourceHealth returns the health of an object.
var ResourceHealth = health.GetResourceHealth

// UnverifiedTLS accepts every certificate of a repo-server, because it is self-signed by default.
var UnverifiedTLS = tls.Configuration{}
