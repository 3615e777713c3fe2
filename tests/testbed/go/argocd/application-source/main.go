// Command application-source answers what Argo CD itself makes of a folder: the objects of a directory, kustomize or Helm
// source. It finds kustomize and Helm on the PATH.
//
// Every line of standard input is a question, every line of standard output its answer.
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

type question struct {
	// The folder, and the checkout it lies in.
	Folder string `json:"folder"`
	Root   string `json:"root"`
	// The Application, and what its source says beyond the path.
	Name      string                     `json:"name"`
	Namespace string                     `json:"namespace"`
	Source    v1alpha1.ApplicationSource `json:"source"`
	// What Argo CD knows of the destination, and its setting kustomize.buildOptions.
	KubeVersion           string `json:"kube_version"`
	KustomizeBuildOptions string `json:"kustomize_build_options"`
}

type answer struct {
	Manifests []string `json:"manifests"`
	Error     string   `json:"error"`
}

func main() {
	// What it has to say about files it leaves out is not asked for.
	logrus.SetLevel(logrus.PanicLevel)
	conversation.Hold(generate)
}

func generate(asked question) answer {
	request := &apiclient.ManifestRequest{
		Repo:              &v1alpha1.Repository{},
		AppName:           asked.Name,
		Namespace:         asked.Namespace,
		KubeVersion:       asked.KubeVersion,
		KustomizeOptions:  &v1alpha1.KustomizeOptions{BuildOptions: asked.KustomizeBuildOptions},
		ApplicationSource: &asked.Source,
	}
	response, err := repository.GenerateManifests(context.Background(), asked.Folder, asked.Root, "", request, false,
		git.NoopCredsStore{}, resource.MustParse("0"), nil)
	if err != nil {
		return answer{Manifests: []string{}, Error: err.Error()}
	}
	return answer{Manifests: response.Manifests}
}
