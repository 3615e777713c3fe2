// Command object-health answers which health Argo CD's application controller sees in an object, with the settings it ships with.
//
// Every line of standard input is an object, every line of standard output its health.
package main

import (
	"encoding/json"
	"log"

	"argocd-ocm-cmp/testbed/argocd/conversation"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	conversation.Hold(func(text json.RawMessage) health.HealthStatus {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			log.Fatal(err)
		}
		return healthOf(object)
	})
}

// healthOf is empty for an object that Argo CD does not judge. A check that fails says so in the health it returns.
func healthOf(object *unstructured.Unstructured) health.HealthStatus {
	found, err := health.GetResourceHealth(object, lua.ResourceHealthOverrides{})
	if found == nil {
		if err != nil {
			log.Fatal(err)
		}
		return health.HealthStatus{}
	}
	return *found
}
