package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// cluster is an API server in memory. It stores nothing, but reads each request as a real one does.
type cluster struct {
	kinds   map[schema.GroupVersionResource]kind
	decoder runtime.Decoder
	typed   *runtime.Scheme
	version atomic.Uint64
}

// call is a run of the agent: it says whether the objects exist, and collects the identities of those that it writes.
type call struct {
	exists  bool
	written []identity
}

type callKey struct{}

func newCluster(kinds []kind) *cluster {
	typed := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(typed))
	utilruntime.Must(apiextensionsv1.AddToScheme(typed))
	cluster := &cluster{
		kinds:   map[schema.GroupVersionResource]kind{},
		decoder: serializer.NewCodecFactory(typed).UniversalDeserializer(),
		typed:   typed,
	}
	for _, kind := range kinds {
		cluster.kinds[schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Plural}] = kind
	}
	return cluster
}

// target is the object or, without a name, the collection of a request.
type target struct {
	kind            kind
	namespace, name string
}

func (t target) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.kind.Group, Version: t.kind.Version, Kind: t.kind.Kind}
}

func (t target) identity(name string) identity {
	return identity{t.kind.Group, t.kind.Kind, t.namespace, name}
}

func (c *cluster) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
	}
	call := request.Context().Value(callKey{}).(*call)
	target, err := c.target(request.URL)
	if err != nil {
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, err)
	}
	existing := c.existing(target)
	switch request.Method {
	case http.MethodGet:
		if !call.exists {
			return failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Errorf("%v is missing", target))
		}
		return success(existing)
	case http.MethodDelete:
		call.written = append(call.written, target.identity(target.name))
		return success(existing)
	case http.MethodPost, http.MethodPut:
		name, err := c.read(target, body)
		if err != nil {
			return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err)
		}
		call.written = append(call.written, target.identity(name))
		return response(http.StatusOK, request.Header.Get("Content-Type"), body)
	case http.MethodPatch:
		if strings.Contains(request.Header.Get("Content-Type"), "apply-patch") {
			if body, err = readApply(target, body); err != nil {
				return failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, err)
			}
			existing = body
		}
		call.written = append(call.written, target.identity(target.name))
		return success(existing)
	default:
		return nil, fmt.Errorf("unexpected request: %s %s", request.Method, request.URL)
	}
}

func (c *cluster) target(address *url.URL) (target, error) {
	parts, err := segments(address)
	if err != nil {
		return target{}, err
	}
	var resource schema.GroupVersionResource
	switch {
	case len(parts) > 2 && parts[0] == "api":
		resource.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		resource.Group, resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return target{}, fmt.Errorf("no resource at %s", address)
	}
	var result target
	if len(parts) > 2 && parts[0] == "namespaces" {
		result.namespace, parts = parts[1], parts[2:]
	}
	resource.Resource = parts[0]
	if len(parts) > 1 {
		result.name = parts[1]
	}
	kind, found := c.kinds[resource]
	if !found || len(parts) > 2 || kind.Namespaced != (result.namespace != "") {
		return target{}, fmt.Errorf("no resource at %s", address)
	}
	result.kind = kind
	return result, nil
}

func segments(address *url.URL) ([]string, error) {
	parts := strings.Split(strings.Trim(address.EscapedPath(), "/"), "/")
	for at, part := range parts {
		text, err := url.PathUnescape(part)
		if err != nil {
			return nil, err
		}
		parts[at] = text
	}
	return parts, nil
}

func (c *cluster) existing(target target) []byte {
	object := map[string]any{
		"apiVersion": target.gvk().GroupVersion().String(),
		"kind":       target.kind.Kind,
		"metadata": map[string]any{
			"name":      target.name,
			"namespace": target.namespace,
			"uid":       "2",
			// Another version each time, so that the agent never takes an object for one that it has just written.
			"resourceVersion": strconv.FormatUint(c.version.Add(1), 10),
		},
	}
	text, err := json.Marshal(object)
	utilruntime.Must(err)
	return text
}

// read reads the body of a request that creates or replaces an object, and returns the name of the object.
func (c *cluster) read(target target, body []byte) (string, error) {
	gvk := target.gvk()
	var object runtime.Object
	if c.typed.Recognizes(gvk) {
		read, actual, err := c.decoder.Decode(body, &gvk, nil)
		if err != nil {
			return "", err
		}
		if *actual != gvk {
			return "", fmt.Errorf("%s in a request for %s", actual, gvk)
		}
		object = read
	} else {
		read := &unstructured.Unstructured{}
		if err := read.UnmarshalJSON(body); err != nil {
			return "", err
		}
		object = read
		if actual := read.GroupVersionKind(); actual != gvk {
			return "", fmt.Errorf("%s in a request for %s", actual, gvk)
		}
	}
	metadata, err := meta.Accessor(object)
	if err != nil {
		return "", err
	}
	return metadata.GetName(), check(target, metadata.GetNamespace(), metadata.GetName())
}

// readApply reads the body of a server-side apply, and returns it as JSON.
func readApply(target target, body []byte) ([]byte, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(body, &object.Object); err != nil {
		return nil, err
	}
	if actual := object.GroupVersionKind(); actual != target.gvk() {
		return nil, fmt.Errorf("%s in a request for %s", actual, target.gvk())
	}
	if err := check(target, object.GetNamespace(), object.GetName()); err != nil {
		return nil, err
	}
	text, err := object.MarshalJSON()
	return bytes.TrimSpace(text), err
}

// check compares the namespace and the name of a body with the address of the request.
func check(target target, namespace, name string) error {
	// An API server ignores the namespace of a cluster-scoped object.
	if target.kind.Namespaced && namespace != "" && namespace != target.namespace {
		return fmt.Errorf("namespace %q in a request for %q", namespace, target.namespace)
	}
	if name == "" || (target.name != "" && name != target.name) {
		return fmt.Errorf("name %q in a request for %q", name, target.name)
	}
	return nil
}

func success(object []byte) (*http.Response, error) {
	return response(http.StatusOK, "application/json", object)
}

func failure(code int32, reason metav1.StatusReason, cause error) (*http.Response, error) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  cause.Error(),
		Reason:   reason,
		Code:     code,
	}
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return response(int(code), "application/json", text)
}

func response(code int, contentType string, body []byte) (*http.Response, error) {
	return &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {contentType}},
		Body:       io.NopCloser(bytes.NewReader(body)),
	}, nil
}
