// Command baseline does the work of `argocd-ocm-cmp generate` with Kubernetes' Go libraries: it walks the folder, decodes every
// document with apimachinery's YAML decoder into an unstructured object, wraps all in a ManifestWork, and prints it with
// encoding/json. It neither validates nor orders objects.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder, cluster, name string) error {
	var manifests []any
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml", ".json":
			found, err := read(path)
			manifests = append(manifests, found...)
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	work := map[string]any{
		"apiVersion": "work.open-cluster-management.io/v1",
		"kind":       "ManifestWork",
		"metadata":   map[string]any{"name": name, "namespace": cluster},
		"spec":       map[string]any{"workload": map[string]any{"manifests": manifests}},
	}
	out := bufio.NewWriter(os.Stdout)
	if err := json.NewEncoder(out).Encode(work); err != nil {
		return err
	}
	return out.Flush()
}

func read(path string) ([]any, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var objects []any
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		object := unstructured.Unstructured{}
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if object.Object != nil {
			objects = append(objects, object.Object)
		}
	}
}
