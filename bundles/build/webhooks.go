// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bellwether-dev/bellwether/bundles"
)

// webhook contains the common data of the three types of webhooks: the server, and fields that OLM does not support.
type webhook struct {
	object
	name    string
	url     *string
	service *serviceReference
	// selector and conditions restrict the requests that the webhook is called for.
	selector   *metav1.LabelSelector
	conditions []admissionregistrationv1.MatchCondition
}

// serviceReference is the Service that serves a webhook.
type serviceReference struct {
	name string
	path *string
	port int32
}

// setWebhooks converts webhook configurations and conversion webhooks to definitions of the CSV, because OLM creates
// their Services, certificates and configurations. If there are none, the definitions of the base stay.
func (a *assembler) setWebhooks() {
	var out []operatorsv1alpha1.WebhookDescription
	for _, c := range a.objects.validating {
		for _, w := range c.value.Webhooks {
			out = append(out, a.convertValidatingWebhook(c.object, w))
		}
	}
	for _, c := range a.objects.mutating {
		for _, w := range c.value.Webhooks {
			out = append(out, a.convertMutatingWebhook(c.object, w))
		}
	}
	out = append(out, a.listConversionWebhooks()...)
	if len(out) > 0 {
		slices.SortStableFunc(out, func(a, b operatorsv1alpha1.WebhookDescription) int {
			return cmp.Compare(a.GenerateName, b.GenerateName)
		})
		a.csv.Spec.WebhookDefinitions = out
	}
	a.placeServices(out)
	a.checkCertificates(a.csv.Spec.WebhookDefinitions)
}

// convertValidatingWebhook converts a validating webhook to a definition of the CSV.
func (a *assembler) convertValidatingWebhook(o object,
	w admissionregistrationv1.ValidatingWebhook) operatorsv1alpha1.WebhookDescription {
	d := operatorsv1alpha1.WebhookDescription{
		Type: operatorsv1alpha1.ValidatingAdmissionWebhook, GenerateName: w.Name, Rules: w.Rules,
		FailurePolicy: w.FailurePolicy,
		MatchPolicy:   w.MatchPolicy, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions,
	}
	a.setWebhookService(&d, webhook{object: o, name: w.Name, url: w.ClientConfig.URL,
		service: newServiceReference(w.ClientConfig), selector: w.NamespaceSelector, conditions: w.MatchConditions})
	return d
}

// convertMutatingWebhook converts a mutating webhook to a definition of the CSV.
func (a *assembler) convertMutatingWebhook(o object,
	w admissionregistrationv1.MutatingWebhook) operatorsv1alpha1.WebhookDescription {
	d := operatorsv1alpha1.WebhookDescription{
		Type: operatorsv1alpha1.MutatingAdmissionWebhook, GenerateName: w.Name, Rules: w.Rules,
		FailurePolicy: w.FailurePolicy,
		MatchPolicy:   w.MatchPolicy, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, ReinvocationPolicy: w.ReinvocationPolicy,
	}
	a.setWebhookService(&d, webhook{object: o, name: w.Name, url: w.ClientConfig.URL,
		service: newServiceReference(w.ClientConfig), selector: w.NamespaceSelector, conditions: w.MatchConditions})
	return d
}

// newServiceReference returns the Service of a webhook; nil if it has none. The default port is 443.
func newServiceReference(c admissionregistrationv1.WebhookClientConfig) *serviceReference {
	if c.Service == nil {
		return nil
	}
	r := &serviceReference{name: c.Service.Name, path: c.Service.Path, port: 443}
	if c.Service.Port != nil {
		r.port = *c.Service.Port
	}
	return r
}

// setWebhookService sets the Deployment, port and path that serve a webhook, and defaults. It reports fields that OLM
// does not support, and a webhook without a Deployment.
func (a *assembler) setWebhookService(d *operatorsv1alpha1.WebhookDescription, w webhook) {
	if len(d.AdmissionReviewVersions) == 0 {
		d.AdmissionReviewVersions = []string{"v1"}
	}
	if d.SideEffects == nil {
		none := admissionregistrationv1.SideEffectClassNone
		d.SideEffects = &none
	}
	if w.selector != nil && len(w.selector.MatchLabels)+len(w.selector.MatchExpressions) > 0 {
		a.warn("%v: webhook %s loses its namespaceSelector, for OLM sets its own, of the namespaces that the "+
			"operator is installed for", w.object, w.name)
	}
	if len(w.conditions) > 0 {
		a.warn("%v: webhook %s loses its matchConditions, which a ClusterServiceVersion cannot say: it is called "+
			"more often", w.object, w.name)
	}
	if w.service == nil {
		a.addProblem("%v: webhook %s is answered at a URL; in a bundle it must be answered by a Service of the "+
			"operator", w.object, w.name)
		return
	}
	d.WebhookPath = w.service.path
	service, deployment := a.findDeployment(w.service.name)
	if deployment == "" {
		a.addProblem("%v: webhook %s is answered by Service %s, but no Deployment among the manifests is behind that",
			w.object, w.name, w.service.name)
		return
	}
	a.webhookDeployments[w.service.name] = deployment
	d.DeploymentName = deployment
	d.ContainerPort = w.service.port
	for _, p := range service.Spec.Ports {
		if p.Port == w.service.port {
			d.TargetPort = readTargetPort(p)
		}
	}
}

// readTargetPort returns the target port of a Service port; by default, this is the same port.
func readTargetPort(p corev1.ServicePort) *intstr.IntOrString {
	if p.TargetPort == (intstr.IntOrString{}) {
		same := intstr.FromInt32(p.Port)
		return &same
	}
	return &p.TargetPort
}

// findDeployment returns the Service with the given name, and the name of the Deployment whose pods it selects. The
// Service is nil if it does not exist or selects no pods by labels; the name is empty if there is no such Deployment.
func (a *assembler) findDeployment(name string) (*corev1.Service, string) {
	i := slices.IndexFunc(a.objects.services, func(s typedObject[corev1.Service]) bool { return s.GetName() == name })
	if i < 0 || len(a.objects.services[i].value.Spec.Selector) == 0 {
		return nil, ""
	}
	service := a.objects.services[i].value
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for _, d := range a.objects.deployments {
		if selector.Matches(labels.Set(d.value.Spec.Template.Labels)) {
			return service, d.GetName()
		}
	}
	return service, ""
}

// listConversionWebhooks returns one definition for all CRDs that have the same Service, path and port for conversion.
func (a *assembler) listConversionWebhooks() []operatorsv1alpha1.WebhookDescription {
	type place struct {
		service, path string
		port          int32
	}
	definitions := map[place]*operatorsv1alpha1.WebhookDescription{}
	var order []place
	for _, crd := range a.objects.crds {
		c := crd.value.Spec.Conversion
		if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil ||
			c.Webhook.ClientConfig == nil {
			continue
		}
		ref := newConversionReference(c.Webhook.ClientConfig)
		key := place{}
		if ref != nil {
			key = place{service: ref.name, path: *cmp.Or(ref.path, new(string)), port: ref.port}
		}
		if existing := definitions[key]; existing != nil {
			existing.ConversionCRDs = append(existing.ConversionCRDs, crd.GetName())
			continue
		}
		d := &operatorsv1alpha1.WebhookDescription{
			Type: operatorsv1alpha1.ConversionWebhook, AdmissionReviewVersions: c.Webhook.ConversionReviewVersions,
			ConversionCRDs: []string{crd.GetName()}, GenerateName: "c" + strings.SplitN(crd.GetName(), ".", 2)[0] +
				".kb.io",
		}
		a.setWebhookService(d, webhook{object: crd.object, name: "for conversion", service: ref})
		definitions[key] = d
		order = append(order, key)
	}
	out := make([]operatorsv1alpha1.WebhookDescription, 0, len(order))
	for _, key := range order {
		slices.Sort(definitions[key].ConversionCRDs)
		out = append(out, *definitions[key])
	}
	return out
}

// newConversionReference returns the Service of a conversion webhook; nil if it has none. The default port is 443.
func newConversionReference(c *apiextensionsv1.WebhookClientConfig) *serviceReference {
	if c.Service == nil {
		return nil
	}
	r := &serviceReference{name: c.Service.Name, path: c.Service.Path, port: 443}
	if c.Service.Port != nil {
		r.port = *c.Service.Port
	}
	return r
}

// placeServices keeps all Services except those that OLM creates under the same name for webhooks, because OLM would
// overwrite them.
func (a *assembler) placeServices(webhooks []operatorsv1alpha1.WebhookDescription) {
	olmServices := map[string]bool{}
	for _, w := range webhooks {
		olmServices[bundles.WebhookService(w)] = true
	}
	for _, s := range a.objects.services {
		if olmServices[s.GetName()] {
			a.leaveOut(s.object, "OLM makes a Service of this name for the webhooks")
			continue
		}
		a.objects.manifests = append(a.objects.manifests, s.object)
	}
}
