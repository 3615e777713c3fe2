// Command app-details answers what Argo CD's UI is told about an Application's source: it asks the repo-server as Argo CD's API
// server does when a user opens the Application's parameters.
//
// Every line of standard input is a question, every line of standard output its answer.
package main

import (
	"context"

	"argocd-ocm-cmp/testbed/argocd/conversation"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/sirupsen/logrus"
)

type question struct {
	RepoServer  string               `json:"repoServer"`
	Application v1alpha1.Application `json:"application"`
}

type answer struct {
	Details *apiclient.RepoAppDetailsResponse `json:"details"`
	Error   string                            `json:"error"`
}

func main() {
	// What it has to say about connections is not asked for.
	logrus.SetLevel(logrus.PanicLevel)
	conversation.Hold(details)
}

func details(asked question) answer {
	tls := apiclient.TLSConfiguration{DisableTLS: true}
	connection, client, err := apiclient.NewRepoServerClientset(asked.RepoServer, 60, tls).NewRepoServerClient()
	if err != nil {
		return answer{Error: err.Error()}
	}
	defer connection.Close()
	source := asked.Application.Spec.GetSourcePtrByIndex(0)
	details, err := client.GetAppDetails(context.Background(), &apiclient.RepoServerAppDetailsQuery{
		Repo:             &v1alpha1.Repository{Repo: source.RepoURL},
		Source:           source,
		AppName:          asked.Application.Name,
		KustomizeOptions: &v1alpha1.KustomizeOptions{},
		HelmOptions:      &v1alpha1.HelmOptions{},
	})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Details: details}
}
