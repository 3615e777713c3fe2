// Command app-details requests the details of an Application's source from the repo-server, as Argo CD's API server does when a
// user opens the parameters of the Application.
//
// Every line of standard input is a request, and every line of standard output is its response.
package main

import (
	"context"

	"argocd-ocm-cmp/testbed/argocd/conversation"
	"argocd-ocm-cmp/testbed/argocd/versions"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/sirupsen/logrus"
)

type request struct {
	RepoServer  string               `json:"repoServer"`
	Application v1alpha1.Application `json:"application"`
}

type response struct {
	Details *apiclient.RepoAppDetailsResponse `json:"details"`
	Error   string                            `json:"error"`
}

func main() {
	// The client logs connections, which the tests do not need.
	logrus.SetLevel(logrus.PanicLevel)
	conversation.Serve(details)
}

func details(request request) response {
	connection, client, err := apiclient.NewRepoServerClientset(request.RepoServer, 60, versions.UnverifiedTLS).NewRepoServerClient()
	if err != nil {
		return response{Error: err.Error()}
	}
	defer connection.Close()
	source := request.Application.Spec.GetSourcePtrByIndex(0)
	details, err := client.GetAppDetails(context.Background(), &apiclient.RepoServerAppDetailsQuery{
		Repo:             &v1alpha1.Repository{Repo: source.RepoURL},
		Source:           source,
		AppName:          request.Application.Name,
		KustomizeOptions: &v1alpha1.KustomizeOptions{},
		HelmOptions:      &v1alpha1.HelmOptions{},
	})
	if err != nil {
		return response{Error: err.Error()}
	}
	return response{Details: details}
}
