// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/base64"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// crdKind is the kind whose objects have the caBundles of conversion webhooks.
var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// readWebhookCA returns the CA of a Service's webhooks. It reads the cache before each run, so
// that a rotated CA is used immediately.
func (r *Reconciler) readWebhookCA(ctx context.Context, namespace string, target *v1alpha1.ServiceTarget) (string,
	*probes.Failure) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	webhooks, err := r.readWebhooks(ctx)
	if err != nil {
		return "", &probes.Failure{Reason: v1alpha1.ReasonWebhookCAUnavailable,
			Message: fmt.Sprintf("cannot read the webhooks of the cluster: %v", err)}
	}
	return probes.WebhookCA(namespace, target, webhooks)
}

// readWebhooks returns all webhooks of the cluster that a Service implements.
func (r *Reconciler) readWebhooks(ctx context.Context) ([]probes.Webhook, error) {
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := r.Client.List(ctx, &validating, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := r.Client.List(ctx, &mutating, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	definitions := &unstructured.UnstructuredList{}
	definitions.SetGroupVersionKind(crdKind.GroupVersion().WithKind(crdKind.Kind + "List"))
	if err := r.Client.List(ctx, definitions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	var webhooks []probes.Webhook
	for _, config := range listClientConfigs(validating.Items, mutating.Items) {
		if s := config.Service; s != nil {
			webhooks = append(webhooks, probes.Webhook{Namespace: s.Namespace, Service: s.Name,
				Port: ptr.Deref(s.Port, probes.DefaultWebhookPort), CABundle: string(config.CABundle)})
		}
	}
	for _, definition := range definitions.Items {
		if w, ok := readConversionWebhook(definition.Object); ok {
			webhooks = append(webhooks, w)
		}
	}
	return webhooks, nil
}

// listClientConfigs returns the client configurations of all admission webhooks.
func listClientConfigs(validating []admissionv1.ValidatingWebhookConfiguration,
	mutating []admissionv1.MutatingWebhookConfiguration) []admissionv1.WebhookClientConfig {
	var configs []admissionv1.WebhookClientConfig
	for _, configuration := range validating {
		for _, w := range configuration.Webhooks {
			configs = append(configs, w.ClientConfig)
		}
	}
	for _, configuration := range mutating {
		for _, w := range configuration.Webhooks {
			configs = append(configs, w.ClientConfig)
		}
	}
	return configs
}

// readConversionWebhook returns the conversion webhook of a CustomResourceDefinition; false if
// no Service implements its conversion, or the caBundle cannot be decoded.
func readConversionWebhook(crd map[string]any) (probes.Webhook, bool) {
	config := []string{"spec", "conversion", "webhook", "clientConfig"} // copied by each append
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(crd, append(config[:len(config):len(config)], fields...)...)
		return value
	}
	w := probes.Webhook{Namespace: text("service", "namespace"), Service: text("service", "name"),
		Port: probes.DefaultWebhookPort}
	port, found, _ := unstructured.NestedInt64(crd, append(config[:len(config):len(config)], "service", "port")...)
	if found {
		w.Port = int32(port)
	}
	bundle, err := base64.StdEncoding.DecodeString(text("caBundle"))
	w.CABundle = string(bundle)
	return w, err == nil && w.Service != ""
}

// newCRD returns an empty, unstructured CustomResourceDefinition.
func newCRD() client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(crdKind)
	return object
}

// trimCRD keeps only the conversion of a CustomResourceDefinition, because its schemas can
// be hundreds of kilobytes. An object that is cached only as metadata, to detect its
// deletion, keeps its name.
func trimCRD(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
			DeletionTimestamp: m.DeletionTimestamp}
		return m, nil
	}
	crd, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	slim := newCRD().(*unstructured.Unstructured)
	slim.SetName(crd.GetName())
	slim.SetUID(crd.GetUID())
	slim.SetResourceVersion(crd.GetResourceVersion())
	if conversion, ok, _ := unstructured.NestedMap(crd.Object, "spec", "conversion"); ok {
		slim.Object["spec"] = map[string]any{"conversion": conversion}
	}
	return slim, nil
}
