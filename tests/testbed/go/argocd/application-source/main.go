// Command application-source prints the objects that Argo CD renders from a folder as a directory, kustomize or Helm source. It
// runs kustomize and Helm from the PATH.
//
// Every line of standard input is a request, and every line of standard output is its response.
package main

import (
	"context"

	"argocd-ocm-cmp/testbed/argocd/conversation"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/reposerver/repository"
	"github.com/argoproj/argo-cd/v3/util/git"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/resource"
)

type input struct {
	// The folder, and the checkout that contains it.
	Folder string `json:"folder"`
	Root   string `json:"root"`
	// The Application, and the fields of its source except the path.
	Name      string                     `json:"name"`
	Namespace string                     `json:"namespace"`
	Source    v1alpha1.ApplicationSource `json:"source"`
	// The Kubernetes version of the destination, and Argo CD's setting kustomize.buildOptions.
	KubeVersion           string `json:"kube_version"`
	KustomizeBuildOptions string `json:"kustomize_build_options"`
}

type output struct {
	Manifests []string `json:"manifests"`
	Error     string   `json:"error"`
}

func main() {
	// Argo CD logs skipped files, which the tests do not need.
	logrus.SetLevel(logrus.PanicLevel)
	conversation.Serve(generate)
}

func generate(input input) output {
	request := &apiclient.ManifestRequest{
		Repo:              &v1alpha1.Repository{},
		AppName:           input.Name,
		Namespace:         input.Namespace,
		KubeVersion:       input.KubeVersion,
		KustomizeOptions:  &v1alpha1.KustomizeOptions{BuildOptions: input.KustomizeBuildOptions},
		ApplicationSource: &input.Source,
	}
	response, err := repository.GenerateManifests(context.Background(), input.Folder, input.Root, "", request, false,
		git.NoopCredsStore{}, resource.MustParse("0"), nil)
	if err != nil {
		return output{Manifests: []string{}, Error: err.Error()}
	}
	return output{Manifests: response.Manifests}
}
