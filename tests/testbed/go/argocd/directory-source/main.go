// Command directory-source answers what Argo CD's own directory source makes of a folder.
//
// Every line of standard input is a question, every line of standard output its answer.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/reposerver/repository"
	"github.com/argoproj/argo-cd/v3/util/git"
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/api/resource"
)

type question struct {
	Folder  string `json:"folder"`
	Root    string `json:"root"`
	Recurse bool   `json:"recurse"`
	Include string `json:"include"`
	Exclude string `json:"exclude"`
}

type answer struct {
	Manifests []string `json:"manifests"`
	Error     string   `json:"error"`
}

func main() {
	// What it has to say about files it leaves out is not asked for.
	logrus.SetLevel(logrus.PanicLevel)
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	answers := json.NewEncoder(os.Stdout)
	for questions.More() {
		var asked question
		if err := questions.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		if err := answers.Encode(generate(asked)); err != nil {
			log.Fatal(err)
		}
	}
}

func generate(asked question) answer {
	request := &apiclient.ManifestRequest{
		Repo:    &v1alpha1.Repository{},
		AppName: "application",
		ApplicationSource: &v1alpha1.ApplicationSource{
			Directory: &v1alpha1.ApplicationSourceDirectory{
				Recurse: asked.Recurse,
				Include: asked.Include,
				Exclude: asked.Exclude,
			},
		},
	}
	response, err := repository.GenerateManifests(context.Background(), asked.Folder, asked.Root, "", request, false,
		git.NoopCredsStore{}, resource.MustParse("0"), nil)
	if err != nil {
		return answer{Manifests: []string{}, Error: err.Error()}
	}
	return answer{Manifests: response.Manifests}
}
