// Command agent applies manifests with the code of OCM's work agent to an API server in memory, with each update strategy, and
// prints the identities of the objects that it checked and wrote.
//
// It reads and writes frames as the command in the folder above. The first frame lists the kinds of the cluster, each other one is
// a manifest of a ManifestWork.
//
//	{"kinds": [{"group": ..., "version": ..., "kind": ..., "plural": ..., "namespaced": ...}]}
//	a manifest -> {"checked": null | [group, kind, namespace, name], "written": [[group, kind, namespace, name]], "errors": [...]}
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/ocm/pkg/work/helper"
	"open-cluster-management.io/ocm/pkg/work/spoke/apply"
	"open-cluster-management.io/sdk-go/pkg/basecontroller/events"
)

// identity is the group, kind, namespace and name of an object.
type identity [4]string

type kind struct {
	Group, Version, Kind, Plural string
	Namespaced                   bool
}

type answer struct {
	// Checked is the object that the agent reads, and for which it checks the permissions of the executor.
	Checked *identity `json:"checked"`
	// Written are the objects that it creates, changes or deletes with any of the update strategies.
	Written []identity `json:"written"`
	// Errors are for messages of the test.
	Errors []string `json:"errors"`
}

func newAnswer() answer { return answer{Written: []identity{}, Errors: []string{}} }

type agent struct {
	cluster  *cluster
	mapper   meta.RESTMapper
	appliers *apply.Appliers
}

func main() {
	klog.SetLogger(logr.Discard())
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	if err := serve(in, out); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func serve(in *bufio.Reader, out *bufio.Writer) error {
	first, err := readFrame(in)
	if err != nil {
		return err
	}
	agent, err := newAgent(first)
	if err != nil {
		return err
	}
	if err := writeFrame(out, newAnswer()); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	// The manifests are applied in parallel, and the answers are in the order of the manifests.
	pending := make(chan chan answer, 4*runtime.GOMAXPROCS(0))
	done := make(chan error, 1)
	go func() {
		for result := range pending {
			if err := writeFrame(out, <-result); err != nil {
				done <- err
				return
			}
			if len(pending) == 0 {
				if err := out.Flush(); err != nil {
					done <- err
					return
				}
			}
		}
		done <- out.Flush()
	}()
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for {
		manifest, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			close(pending)
			return <-done
		} else if err != nil {
			return err
		}
		result := make(chan answer, 1)
		pending <- result
		slots <- struct{}{}
		go func() {
			result <- agent.answer(manifest)
			<-slots
		}()
	}
}

func readFrame(in *bufio.Reader) ([]byte, error) {
	var size uint32
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return nil, err
	}
	frame := make([]byte, size)
	_, err := io.ReadFull(in, frame)
	return frame, err
}

func writeFrame(out *bufio.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := binary.Write(out, binary.LittleEndian, uint32(len(text))); err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

func newAgent(frame []byte) (*agent, error) {
	var setup struct{ Kinds []kind }
	if err := json.Unmarshal(frame, &setup); err != nil {
		return nil, err
	}
	cluster := newCluster(setup.Kinds)
	config := &rest.Config{Host: "http://cluster", QPS: -1}
	client := &http.Client{Transport: cluster}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	kubeClient, err := kubernetes.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	extensionsClient, err := apiextensionsclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &agent{
		cluster:  cluster,
		mapper:   restmapper.NewDiscoveryRESTMapper(discovered(setup.Kinds)),
		appliers: apply.NewAppliers(dynamicClient, kubeClient, extensionsClient),
	}, nil
}

// discovered returns the kinds as the discovery of an API server does.
func discovered(kinds []kind) []*restmapper.APIGroupResources {
	var groups []*restmapper.APIGroupResources
	byName := map[string]*restmapper.APIGroupResources{}
	for _, kind := range kinds {
		group := byName[kind.Group]
		if group == nil {
			group = &restmapper.APIGroupResources{
				Group:              metav1.APIGroup{Name: kind.Group},
				VersionedResources: map[string][]metav1.APIResource{},
			}
			byName[kind.Group] = group
			groups = append(groups, group)
		}
		if group.VersionedResources[kind.Version] == nil {
			version := metav1.GroupVersionForDiscovery{Version: kind.Version}
			group.Group.Versions = append(group.Group.Versions, version)
			group.Group.PreferredVersion = group.Group.Versions[0]
		}
		resource := metav1.APIResource{Name: kind.Plural, Kind: kind.Kind, Namespaced: kind.Namespaced}
		group.VersionedResources[kind.Version] = append(group.VersionedResources[kind.Version], resource)
	}
	return groups
}

// answer applies a manifest in the steps of applyOneManifest in OCM's pkg/work/spoke/controllers/manifestcontroller.
func (a *agent) answer(manifest []byte) answer {
	result := newAnswer()
	fail := func(err error) answer {
		result.Errors = append(result.Errors, err.Error())
		return result
	}
	stored, err := stored(manifest)
	if err != nil {
		return fail(err)
	}
	required := &unstructured.Unstructured{}
	if err := required.UnmarshalJSON(stored); err != nil {
		return fail(err)
	}
	resource, gvr, err := helper.BuildResourceMeta(0, required, a.mapper)
	if err != nil {
		return fail(err)
	}
	kind, found := a.cluster.kinds[gvr]
	if !found {
		return fail(fmt.Errorf("the cluster has no %s", gvr))
	}
	result.Checked = &identity{gvr.Group, kind.Kind, resource.Namespace, resource.Name}
	for _, strategy := range []workv1.UpdateStrategy{
		{Type: workv1.UpdateStrategyTypeUpdate},
		{Type: workv1.UpdateStrategyTypeCreateOnly},
		{
			Type:            workv1.UpdateStrategyTypeServerSideApply,
			ServerSideApply: &workv1.ServerSideApplyConfig{Force: true},
		},
	} {
		for _, exists := range []bool{false, true} {
			if exists && strategy.Type == workv1.UpdateStrategyTypeServerSideApply {
				// The agent does not look before it applies.
				continue
			}
			call := &call{exists: exists}
			if err := a.apply(call, gvr, required.DeepCopy(), strategy); err != nil {
				result.Errors = append(result.Errors, err.Error())
			}
			for _, written := range call.written {
				if !slices.Contains(result.Written, written) {
					result.Written = append(result.Written, written)
				}
			}
		}
	}
	return result
}

func (a *agent) apply(
	call *call, gvr schema.GroupVersionResource, required *unstructured.Unstructured, strategy workv1.UpdateStrategy,
) (err error) {
	// The agent's goroutines recover from a panic as well: nothing is applied then.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panicked: %v", cause)
		}
	}()
	ctx := klog.NewContext(context.WithValue(context.Background(), callKey{}, call), logr.Discard())
	owner := metav1.OwnerReference{
		APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: "work", UID: "1",
	}
	option := &workv1.ManifestConfigOption{UpdateStrategy: &strategy}
	recorder := events.NewContextualLoggingEventRecorder("agent")
	_, err = a.appliers.GetApplier(strategy.Type).Apply(ctx, gvr, required, owner, option, recorder)
	return err
}

// stored returns a manifest as the API server of the hub returns it in a ManifestWork.
func stored(manifest []byte) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest); err != nil {
		return nil, err
	}
	metadata, found, err := objectmeta.GetObjectMeta(object.Object, true)
	if err != nil {
		return nil, err
	}
	if found {
		if err := objectmeta.SetObjectMeta(object.Object, metadata); err != nil {
			return nil, err
		}
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	}
	text, err := object.MarshalJSON()
	return bytes.TrimSpace(text), err
}
