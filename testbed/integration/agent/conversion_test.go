// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// TestRollbackWithConversionWebhook goes back from versions that convert custom
// resources by a webhook. OLM makes its Service, certificate and configuration, and
// the API server calls it; what answers is in the test, since the pods are stubs.
//
//	1.0.0  v1 {size: "3x4"}
//	1.1.0  v1, v2 {width: "3", height: "4"}, stored as v1, with a webhook
//	1.2.0  the same, stored as v2
func TestRollbackWithConversionWebhook(t *testing.T) {
	t.Parallel()
	// On a cluster of its own: OLM wants an operator with such a webhook to watch all namespaces.
	c := testenv.Cluster(t, cluster.Options{OLM: true, Pods: true})
	testenv.InstallCRDs(t, c)
	h := start(t, c, "converted")
	h.operator = "converted"
	webhook := h.conversionWebhook()
	bundles := line("1.0.0", "1.1.0", "1.2.0")
	v1, v2 := stable("size"), apiVersion{"v2", []string{"width", "height"}}
	older := stores(v1)
	bundles[0].change = watchesAll(older)
	bundles[1].change = watchesAll(webhook.converts(stores(v1, v2)))
	bundles[2].change = watchesAll(webhook.converts(stores(v2, v1)))
	pin := h.pin(bundles...)
	to := func(version string) v1alpha1.Release {
		r := releaseOf(h.operator, pin, version)
		r.Install.Mode, r.Install.Namespace = v1alpha1.InstallAllNamespaces, h.operator
		return r
	}
	h.admit(to("1.0.0"))
	h.runs()
	h.writes("v1", "old", object{"size": "1x2"})
	h.admit(to("1.1.0"))
	h.runs()
	h.writes("v2", "new", object{"width": "3", "height": "4"})
	inV1 := h.reads("v1")
	if size := inV1["new"]["spec"].(object)["size"]; size != "3x4" || webhook.calls.Load() == 0 {
		t.Fatalf("size %q after %d calls of the webhook, so it does not convert", size, webhook.calls.Load())
	}

	// Nothing is stored as v2, so that it and the webhook can go.
	h.goBack(to("1.0.0"), false)
	h.runs()
	h.only("1.0.0")
	h.has("what was written in v2 is there in v1", "v1", inV1)
	// OLM may have put the webhook back (olm.md, fact 28); with one version nobody calls it.
	if d := h.definition(); len(d.Spec.Versions) != 1 {
		t.Errorf("the definition has %d versions", len(d.Spec.Versions))
	}

	// Both versions have the webhook, so that another storage version does no harm.
	h.admit(to("1.2.0"))
	h.runs()
	h.writes("v2", "newest", object{"width": "5", "height": "6"})
	h.touch("v2", "old")
	inV1 = h.reads("v1")
	inV2 := h.reads("v2")
	h.storedVersions("v1", "v2")
	h.goBack(to("1.1.0"), false)
	h.runs()
	h.only("1.1.0")
	h.has("nothing is lost in v1", "v1", inV1)
	h.has("nothing is lost in v2", "v2", inV2)

	// The oldest one has neither the version nor the webhook.
	h.goBack(to("1.0.0"), true)
	h.stalls(v1alpha1.ReasonRollbackImpossible, "impossible", "as v2")
	h.refusesToPutBack(older)
	h.has("nothing was changed", "v1", inV1)
}

// watchesAll has a CSV that can only watch all namespaces, as OLM wants it of one
// with a conversion webhook.
func watchesAll(change func(csv, crd object)) func(csv, crd object) {
	return func(csv, crd object) {
		change(csv, crd)
		csv["spec"].(object)["installModes"] = []any{
			object{"type": "OwnNamespace", "supported": false}, object{"type": "SingleNamespace", "supported": false},
			object{"type": "MultiNamespace", "supported": false}, object{"type": "AllNamespaces", "supported": true}}
	}
}

// conversionWebhook answers for the pods of the operator.
type conversionWebhook struct {
	// deployment is the one that the CSV names, and port where the server listens on
	// each address of a pod.
	deployment string
	port       int
	calls      atomic.Int64
}

// conversionWebhook starts the webhook's server, with the certificate that OLM
// makes for it.
func (h *harness) conversionWebhook() *conversionWebhook {
	h.t.Helper()
	w := &conversionWebhook{deployment: h.operator}
	// A pod's address is not known before; all of them are on loopback.
	listener, err := new(net.ListenConfig).Listen(h.t.Context(), "tcp4", ":0")
	h.must(err)
	w.port = listener.Addr().(*net.TCPAddr).Port
	server := &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: time.Minute}
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: h.operator, Name: w.deployment + "-service-cert"}
		if err := h.Get(h.t.Context(), key, secret); err != nil {
			return nil, fmt.Errorf("get certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		return &pair, err
	}
	server.TLSConfig = &tls.Config{GetCertificate: certificate, MinVersion: tls.VersionTLS12}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	h.t.Cleanup(func() { _ = server.Close() })
	return w
}

// converts has the CSV define the webhook, and the definition ask for one: OLM
// completes it.
func (w *conversionWebhook) converts(change func(csv, crd object)) func(csv, crd object) {
	return func(csv, crd object) {
		change(csv, crd)
		name := crd["metadata"].(object)["name"]
		csv["spec"].(object)["webhookdefinitions"] = []any{object{
			"type": "ConversionWebhook", "generateName": "convert." + w.deployment + ".example.com",
			"deploymentName": w.deployment, "containerPort": 18443, "targetPort": w.port, "webhookPath": "/convert",
			"admissionReviewVersions": []any{"v1"}, "sideEffects": "None", "conversionCRDs": []any{name},
		}}
	}
}

func (w *conversionWebhook) serve(response http.ResponseWriter, request *http.Request) {
	w.calls.Add(1)
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID,
		Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		converted, err := convertThing(raw.Raw, review.Request.DesiredAPIVersion)
		if err != nil {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects,
			runtime.RawExtension{Raw: converted})
	}
	review.Request = nil
	response.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(response).Encode(review)
}

// convertThing converts between v1 {size} and v2 {width, height}.
func convertThing(raw []byte, apiVersion string) ([]byte, error) {
	thing := &unstructured.Unstructured{}
	if err := thing.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decode thing: %w", err)
	}
	spec, _, err := unstructured.NestedStringMap(thing.Object, "spec")
	if err != nil {
		return nil, err
	}
	width, height, isV1 := strings.Cut(spec["size"], "x")
	converted := object{}
	switch toV2 := strings.HasSuffix(apiVersion, "/v2"); {
	case toV2 && isV1:
		converted["width"], converted["height"] = width, height
	case !toV2 && spec["width"] != "":
		converted["size"] = spec["width"] + "x" + spec["height"]
	default:
		return nil, fmt.Errorf("cannot convert %v to %s", spec, apiVersion)
	}
	thing.Object["spec"] = converted
	thing.SetAPIVersion(apiVersion)
	return thing.MarshalJSON()
}
