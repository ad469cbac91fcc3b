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

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/controllers/probe/plan"
)

// crds is the kind with the caBundles of conversion webhooks.
var crds = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// caFromWebhooks reads the CAs of a Service's webhooks from the cache before each
// run, so that a CA that was rotated is used immediately.
func (r *Reconciler) caFromWebhooks(ctx context.Context, namespace string, target *v1alpha1.ServiceTarget) (string,
	*plan.Failure) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	webhooks, err := r.readWebhooks(ctx)
	if err != nil {
		return "", &plan.Failure{Reason: v1alpha1.ReasonWebhookCAUnavailable,
			Message: fmt.Sprintf("cannot read the webhooks of the cluster: %v", err)}
	}
	return plan.WebhookCA(namespace, target, webhooks)
}

// readWebhooks returns all webhooks of the cluster that are Services.
func (r *Reconciler) readWebhooks(ctx context.Context) ([]plan.Webhook, error) {
	var validating admissionv1.ValidatingWebhookConfigurationList
	if err := r.Client.List(ctx, &validating, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list ValidatingWebhookConfigurations: %w", err)
	}
	var mutating admissionv1.MutatingWebhookConfigurationList
	if err := r.Client.List(ctx, &mutating, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list MutatingWebhookConfigurations: %w", err)
	}
	definitions := &unstructured.UnstructuredList{}
	definitions.SetGroupVersionKind(crds.GroupVersion().WithKind(crds.Kind + "List"))
	if err := r.Client.List(ctx, definitions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list CustomResourceDefinitions: %w", err)
	}
	var webhooks []plan.Webhook
	for _, config := range clientConfigs(validating.Items, mutating.Items) {
		if s := config.Service; s != nil {
			webhooks = append(webhooks, plan.Webhook{Namespace: s.Namespace, Service: s.Name,
				Port: ptr.Deref(s.Port, plan.DefaultWebhookPort), CABundle: string(config.CABundle)})
		}
	}
	for _, definition := range definitions.Items {
		if w, ok := conversionWebhook(definition.Object); ok {
			webhooks = append(webhooks, w)
		}
	}
	return webhooks, nil
}

// clientConfigs returns how an API server calls admission webhooks.
func clientConfigs(validating []admissionv1.ValidatingWebhookConfiguration,
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

// conversionWebhook returns the webhook of a CustomResourceDefinition, if it has one
// that is a Service.
func conversionWebhook(crd map[string]any) (plan.Webhook, bool) {
	config := []string{"spec", "conversion", "webhook", "clientConfig"}
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(crd, append(config[:len(config):len(config)], fields...)...)
		return value
	}
	w := plan.Webhook{Namespace: text("service", "namespace"), Service: text("service", "name"),
		Port: plan.DefaultWebhookPort}
	port, found, _ := unstructured.NestedInt64(crd, append(config[:len(config):len(config)], "service", "port")...)
	if found {
		w.Port = int32(port)
	}
	bundle, err := base64.StdEncoding.DecodeString(text("caBundle"))
	w.CABundle = string(bundle)
	return w, err == nil && w.Service != ""
}

func crdObject() client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(crds)
	return object
}

// slimCRD keeps the conversion of a CustomResourceDefinition: its schemas can be
// hundreds of kilobytes. Of one that is cached as metadata, to notice that it is deleted, it keeps the name.
func slimCRD(object any) (any, error) {
	if m, ok := object.(*metav1.PartialObjectMetadata); ok {
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
			DeletionTimestamp: m.DeletionTimestamp}
		return m, nil
	}
	crd, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	slim := crdObject().(*unstructured.Unstructured)
	slim.SetName(crd.GetName())
	slim.SetUID(crd.GetUID())
	slim.SetResourceVersion(crd.GetResourceVersion())
	if conversion, ok, _ := unstructured.NestedMap(crd.Object, "spec", "conversion"); ok {
		slim.Object["spec"] = map[string]any{"conversion": conversion}
	}
	return slim, nil
}
