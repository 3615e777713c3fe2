//go:build argocd3_2

package versions

import (
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/gitops-engine/pkg/health"
)

// HealthStatus is the health of an object.
type HealthStatus = health.HealthStatus

// ResourceHealth returns the health of an object.
var ResourceHealth = health.GetResourceHealth

// UnverifiedTLS accepts every certificate of a repo-server, because it is self-signed by default.
var UnverifiedTLS = apiclient.TLSConfiguration{}
