// Command object-health prints the health that Argo CD's application controller computes for an object with default settings.
//
// Every line of standard input is an object, and every line of standard output is its health.
package main

import (
	"encoding/json"
	"log"

	"argocd-ocm-cmp/testbed/argocd/conversation"
	"argocd-ocm-cmp/testbed/argocd/versions"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	conversation.Serve(func(text json.RawMessage) versions.HealthStatus {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			log.Fatal(err)
		}
		return healthOf(object)
	})
}

// healthOf returns an empty status for a kind without a health check. The error of a failed check is in the returned health.
func healthOf(object *unstructured.Unstructured) versions.HealthStatus {
	found, err := versions.ResourceHealth(object, lua.ResourceHealthOverrides{})
	if found == nil {
		if err != nil {
			log.Fatal(err)
		}
		return versions.HealthStatus{}
	}
	return *found
}
