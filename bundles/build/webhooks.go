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

// webhook is what the three kinds of webhooks have in common: who answers, and what OLM cannot say.
type webhook struct {
	object
	name    string
	url     *string
	service *serviceReference
	// selector and conditions are what the author said about when it is called.
	selector   *metav1.LabelSelector
	conditions []admissionregistrationv1.MatchCondition
}

type serviceReference struct {
	name string
	path *string
	port int32
}

// hookUp turns webhook configurations and conversion webhooks into definitions of the CSV, for OLM makes their
// Services, certificates and configurations. Without any, those of the base stay.
func (a *assembly) hookUp() {
	var out []operatorsv1alpha1.WebhookDescription
	for _, c := range a.objects.validating {
		for _, w := range c.value.Webhooks {
			out = append(out, a.validatingWebhook(c.object, w))
		}
	}
	for _, c := range a.objects.mutating {
		for _, w := range c.value.Webhooks {
			out = append(out, a.mutatingWebhook(c.object, w))
		}
	}
	out = append(out, a.conversions()...)
	if len(out) > 0 {
		slices.SortStableFunc(out, func(a, b operatorsv1alpha1.WebhookDescription) int {
			return cmp.Compare(a.GenerateName, b.GenerateName)
		})
		a.csv.Spec.WebhookDefinitions = out
	}
	a.placeServices(out)
	a.checkCertificates(a.csv.Spec.WebhookDefinitions)
}

func (a *assembly) validatingWebhook(o object,
	w admissionregistrationv1.ValidatingWebhook) operatorsv1alpha1.WebhookDescription {
	d := operatorsv1alpha1.WebhookDescription{
		Type: operatorsv1alpha1.ValidatingAdmissionWebhook, GenerateName: w.Name, Rules: w.Rules,
		FailurePolicy: w.FailurePolicy,
		MatchPolicy:   w.MatchPolicy, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions,
	}
	a.answer(&d, webhook{o, w.Name, w.ClientConfig.URL, reference(w.ClientConfig), w.NamespaceSelector,
		w.MatchConditions})
	return d
}

func (a *assembly) mutatingWebhook(o object,
	w admissionregistrationv1.MutatingWebhook) operatorsv1alpha1.WebhookDescription {
	d := operatorsv1alpha1.WebhookDescription{
		Type: operatorsv1alpha1.MutatingAdmissionWebhook, GenerateName: w.Name, Rules: w.Rules,
		FailurePolicy: w.FailurePolicy,
		MatchPolicy:   w.MatchPolicy, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
		TimeoutSeconds:          w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, ReinvocationPolicy: w.ReinvocationPolicy,
	}
	a.answer(&d, webhook{o, w.Name, w.ClientConfig.URL, reference(w.ClientConfig), w.NamespaceSelector,
		w.MatchConditions})
	return d
}

func reference(c admissionregistrationv1.WebhookClientConfig) *serviceReference {
	if c.Service == nil {
		return nil
	}
	r := &serviceReference{name: c.Service.Name, path: c.Service.Path, port: 443}
	if c.Service.Port != nil {
		r.port = *c.Service.Port
	}
	return r
}

// answer fills in which Deployment answers a webhook, and where.
func (a *assembly) answer(d *operatorsv1alpha1.WebhookDescription, w webhook) {
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
		a.problem("%v: webhook %s is answered at a URL; in a bundle it must be answered by a Service of the operator",
			w.object, w.name)
		return
	}
	d.WebhookPath = w.service.path
	service, deployment := a.behind(w.service.name)
	if deployment == "" {
		a.problem("%v: webhook %s is answered by Service %s, but no Deployment among the manifests is behind that",
			w.object, w.name, w.service.name)
		return
	}
	a.answeredBy[w.service.name] = deployment
	d.DeploymentName = deployment
	d.ContainerPort = w.service.port
	for _, p := range service.Spec.Ports {
		if p.Port == w.service.port {
			d.TargetPort = targetPort(p)
		}
	}
}

// targetPort is where a Service sends to; the same port, if it does not say.
func targetPort(p corev1.ServicePort) *intstr.IntOrString {
	if p.TargetPort == (intstr.IntOrString{}) {
		same := intstr.FromInt32(p.Port)
		return &same
	}
	return &p.TargetPort
}

// behind finds a Service and the Deployment whose pods it selects.
func (a *assembly) behind(name string) (*corev1.Service, string) {
	i := slices.IndexFunc(a.objects.services, func(s typed[corev1.Service]) bool { return s.GetName() == name })
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

// conversions are one definition for all CRDs that are converted at one place.
func (a *assembly) conversions() []operatorsv1alpha1.WebhookDescription {
	type place struct {
		service, path string
		port          int32
	}
	at := map[place]*operatorsv1alpha1.WebhookDescription{}
	var order []place
	for _, crd := range a.objects.crds {
		c := crd.value.Spec.Conversion
		if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil ||
			c.Webhook.ClientConfig == nil {
			continue
		}
		ref := conversionReference(c.Webhook.ClientConfig)
		key := place{}
		if ref != nil {
			key = place{ref.name, *cmp.Or(ref.path, new(string)), ref.port}
		}
		if known := at[key]; known != nil {
			known.ConversionCRDs = append(known.ConversionCRDs, crd.GetName())
			continue
		}
		d := &operatorsv1alpha1.WebhookDescription{
			Type: operatorsv1alpha1.ConversionWebhook, AdmissionReviewVersions: c.Webhook.ConversionReviewVersions,
			ConversionCRDs: []string{crd.GetName()}, GenerateName: "c" + strings.SplitN(crd.GetName(), ".", 2)[0] +
				".kb.io",
		}
		a.answer(d, webhook{object: crd.object, name: "for conversion", service: ref})
		at[key] = d
		order = append(order, key)
	}
	out := make([]operatorsv1alpha1.WebhookDescription, 0, len(order))
	for _, key := range order {
		slices.Sort(at[key].ConversionCRDs)
		out = append(out, *at[key])
	}
	return out
}

func conversionReference(c *apiextensionsv1.WebhookClientConfig) *serviceReference {
	if c.Service == nil {
		return nil
	}
	r := &serviceReference{name: c.Service.Name, path: c.Service.Path, port: 443}
	if c.Service.Port != nil {
		r.port = *c.Service.Port
	}
	return r
}

// placeServices keeps all Services but those that OLM makes under the same name for webhooks: the two would fight.
func (a *assembly) placeServices(webhooks []operatorsv1alpha1.WebhookDescription) {
	made := map[string]bool{}
	for _, w := range webhooks {
		made[bundles.WebhookService(w)] = true
	}
	for _, s := range a.objects.services {
		if made[s.GetName()] {
			a.leaveOut(s.object, "OLM makes a Service of this name for the webhooks")
			continue
		}
		a.objects.manifests = append(a.objects.manifests, s.object)
	}
}
