//go:build !argocd3_2

// Package versions has what the programs need of Argo CD and what is not alike in all its versions.
package versions

import (
	"github.com/argoproj/argo-cd/gitops-engine/v3/pkg/health"
	"github.com/argoproj/argo-cd/v3/util/tls"
)

// HealthStatus is the health of an object.
type HealthStatus = health.HealthStatus

// ResourceHealth returns the health of an object.
var ResourceHealth = health.GetResourceHealth

// UnverifiedTLS trusts every certificate of a repo-server, which are self-signed.
var UnverifiedTLS = tls.Configuration{}
