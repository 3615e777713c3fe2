// Command work-webhook serves the validation of ManifestWorks that OCM's own `work webhook-server` serves.
//
// OCM's command also listens on the fixed ports 8000 and 8080, so two instances cannot run on one machine. This command runs
// the same validator and listens on the given port only.
package main

import (
	"crypto/tls"
	"flag"
	"log"

	"open-cluster-management.io/api/feature"
	workv1 "open-cluster-management.io/api/work/v1"
	"open-cluster-management.io/ocm/pkg/features"
	"open-cluster-management.io/ocm/pkg/work/webhook"
	"open-cluster-management.io/ocm/pkg/work/webhook/common"
	webhookv1 "open-cluster-management.io/ocm/pkg/work/webhook/v1"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	admission "sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	port := flag.Int("port", 0, "port to serve on, on 127.0.0.1")
	certDir := flag.String("certdir", "", "folder with tls.crt and tls.key")
	flag.Parse()

	if err := serve(*port, *certDir); err != nil {
		log.Fatal(err)
	}
}

// serve runs the validator until a signal stops it. KUBECONFIG names the hub.
func serve(port int, certDir string) error {
	ctrl.SetLogger(klog.Background())
	common.ManifestValidator.WithLimit(webhook.NewOptions().ManifestLimit)
	if err := features.HubMutableFeatureGate.Add(feature.DefaultHubWorkFeatureGates); err != nil {
		return err
	}

	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, workv1.Install} {
		if err := add(types); err != nil {
			return err
		}
	}

	hub, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(hub, ctrl.Options{
		Scheme:                 types,
		Metrics:                server.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		WebhookServer: admission.NewServer(admission.Options{
			Host:    "127.0.0.1",
			Port:    port,
			CertDir: certDir,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }},
		}),
	})
	if err != nil {
		return err
	}
	if err := (&webhookv1.ManifestWorkWebhook{}).Init(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
