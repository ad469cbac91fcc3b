// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/explain/doctor"
)

// creator asks the API server questions that are objects to be created.
type creator interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// site is one API server that is looked at.
type site struct {
	client.Reader
	creator   creator
	config    *rest.Config
	configErr error
	observer  *observer
	// check is what gaps about the component are about.
	check doctor.Check
	seen  doctor.Site
}

func (s *site) gap(check doctor.Check, what string, err error) {
	s.observer.gap(check, what+" on "+s.seen.Name, err)
}

func (s *site) observe(ctx context.Context) {
	s.observeClock()
	labels := client.MatchingLabels{"app.kubernetes.io/name": "bellwether",
		"app.kubernetes.io/component": s.seen.Component}
	s.seen.Deployments = s.deployments(ctx, s.check, s.seen.Namespace, labels)
	s.observePermissions(ctx)
	s.observeWebhooks(ctx)
}

func (s *site) observeClock() {
	if s.configErr != nil {
		s.gap(doctor.CheckClocks, "the clock of the API server", s.configErr)
		return
	}
	by, err := ahead(s.config)
	if err != nil {
		s.gap(doctor.CheckClocks, "the clock of the API server", err)
		return
	}
	s.seen.Ahead = &by
}

// deployments reads Deployments with their pods.
func (s *site) deployments(ctx context.Context, check doctor.Check, namespace string,
	opts ...client.ListOption) []explain.Deployment {
	list := &appsv1.DeploymentList{}
	if err := s.List(ctx, list, append(opts, client.InNamespace(namespace))...); err != nil {
		s.gap(check, "Deployments in namespace "+namespace, err)
		return nil
	}
	var out []explain.Deployment
	for i := range list.Items {
		d := &list.Items[i]
		found := explain.Deployment{Name: d.Name, Want: d.Spec.Replicas, Deployment: d}
		if d.Spec.Selector != nil {
			pods := &corev1.PodList{}
			if err := s.List(ctx, pods, client.InNamespace(namespace),
				client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
				s.gap(check, "pods in namespace "+namespace, err)
			}
			found.Pods = pods.Items
		}
		out = append(out, found)
	}
	return out
}

// deploymentsOfOLM are also the values of the label "app" of OLM's released manifests, of its chart and of OpenShift.
var deploymentsOfOLM = []string{"olm-operator", "catalog-operator"}

// NamespacesOfOLM returns the namespaces in which OLM runs on a cluster. Where that cannot be read, or none is found,
// they are those of OLM's released manifests and of OpenShift.
func NamespacesOfOLM(ctx context.Context, c client.Reader) []string {
	found := map[string]bool{}
	for _, name := range deploymentsOfOLM {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
		if err := c.List(ctx, list, client.MatchingLabels{"app": name}); err != nil {
			continue // who may not list Deployments of all namespaces may still read those of the usual ones
		}
		for _, d := range list.Items {
			if d.Name == name {
				found[d.Namespace] = true
			}
		}
	}
	if len(found) == 0 {
		return []string{"olm", "openshift-operator-lifecycle-manager"}
	}
	return slices.Sorted(maps.Keys(found))
}

func (s *site) observeOLM(ctx context.Context) {
	for _, namespace := range NamespacesOfOLM(ctx, s) {
		for _, d := range s.deployments(ctx, doctor.CheckOLM, namespace) {
			if slices.Contains(deploymentsOfOLM, d.Name) {
				s.seen.OLM = append(s.seen.OLM, d)
			}
		}
	}
}

var errNoDeployment = errors.New("its ServiceAccount is not known, because no Deployment of it was found")

// observePermissions asks the API server for each permission of the built-in chart whether the component has it.
func (s *site) observePermissions(ctx context.Context) {
	if len(s.seen.Deployments) == 0 {
		s.gap(doctor.CheckPermissions, "permissions of the "+s.seen.Component, errNoDeployment)
		return
	}
	d := s.seen.Deployments[0].Deployment
	account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
	s.seen.Account = d.Namespace + "/" + account
	granted := s.seen.Component
	if flag(d, "--read-only", "") == "true" {
		granted = "agent-read"
	}
	rules, err := charts.Rules(granted)
	if err != nil {
		s.gap(doctor.CheckPermissions, "the rules of the built-in chart", err)
		return
	}
	denied := map[string][]string{}
	user := "system:serviceaccount:" + d.Namespace + ":" + account
	for _, attributes := range required(rules, flag(d, "--rules-namespace", d.Namespace)) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + d.Namespace,
				"system:authenticated"}, ResourceAttributes: &attributes}}
		if err := s.creator.Create(ctx, review); err != nil {
			s.gap(doctor.CheckPermissions, "permissions of ServiceAccount "+s.seen.Account, err)
			return
		}
		if !review.Status.Allowed {
			resource := describe(attributes)
			denied[resource] = append(denied[resource], attributes.Verb)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(denied)) {
		s.seen.Denied = append(s.seen.Denied, strings.Join(denied[resource], ", ")+" "+resource)
	}
}

// required are the permissions that rules give, one by one. Those of a Role are in the namespace.
func required(rules charts.Permissions, namespace string) []authorizationv1.ResourceAttributes {
	var out []authorizationv1.ResourceAttributes
	for _, r := range rules.Cluster {
		out = append(out, expand(r, "")...)
	}
	for _, r := range rules.Namespaced {
		out = append(out, expand(r, namespace)...)
	}
	slices.SortFunc(out, func(a, b authorizationv1.ResourceAttributes) int {
		return cmp.Or(cmp.Compare(describe(a), describe(b)), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}

// expand combines all that a rule lists.
func expand(r rbacv1.PolicyRule, namespace string) []authorizationv1.ResourceAttributes {
	out := []authorizationv1.ResourceAttributes{{Namespace: namespace}}
	each := func(values []string, set func(a *authorizationv1.ResourceAttributes, value string)) {
		var next []authorizationv1.ResourceAttributes
		for _, a := range out {
			for _, value := range values {
				set(&a, value)
				next = append(next, a)
			}
		}
		out = next
	}
	each(r.APIGroups, func(a *authorizationv1.ResourceAttributes, v string) { a.Group = v })
	each(r.Resources, func(a *authorizationv1.ResourceAttributes, v string) {
		a.Resource, a.Subresource, _ = strings.Cut(v, "/")
	})
	each(r.Verbs, func(a *authorizationv1.ResourceAttributes, v string) { a.Verb = v })
	if len(r.ResourceNames) > 0 {
		each(r.ResourceNames, func(a *authorizationv1.ResourceAttributes, v string) { a.Name = v })
	}
	return out
}

// describe is what a permission is for, as in "operatorrollouts.bellwether.dev".
func describe(a authorizationv1.ResourceAttributes) string {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Name != "" {
		resource += " " + a.Name
	}
	if a.Namespace != "" {
		resource += " in " + a.Namespace
	}
	return resource
}

// flag is the value of an argument of a Deployment's containers.
func flag(d *appsv1.Deployment, name, otherwise string) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		for _, arg := range c.Args {
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value
			}
		}
	}
	return otherwise
}

// observeWebhooks collects the admission webhooks whose Service has no ready endpoint.
func (s *site) observeWebhooks(ctx context.Context) {
	validating, mutating := &admissionv1.ValidatingWebhookConfigurationList{},
		&admissionv1.MutatingWebhookConfigurationList{}
	if err := s.List(ctx, validating); err != nil {
		s.gap(doctor.CheckWebhooks, "ValidatingWebhookConfigurations", err)
	}
	if err := s.List(ctx, mutating); err != nil {
		s.gap(doctor.CheckWebhooks, "MutatingWebhookConfigurations", err)
	}
	for _, c := range validating.Items {
		for _, w := range c.Webhooks {
			s.observeWebhook(ctx, w.ClientConfig.Service, doctor.Webhook{Kind: "ValidatingWebhookConfiguration",
				Configuration: c.Name, Name: w.Name, Fails: fails(w.FailurePolicy), Groups: groups(w.Rules)})
		}
	}
	for _, c := range mutating.Items {
		for _, w := range c.Webhooks {
			s.observeWebhook(ctx, w.ClientConfig.Service, doctor.Webhook{Kind: "MutatingWebhookConfiguration",
				Configuration: c.Name, Name: w.Name, Fails: fails(w.FailurePolicy), Groups: groups(w.Rules)})
		}
	}
}

func fails(p *admissionv1.FailurePolicyType) bool {
	return ptr.Deref(p, admissionv1.Fail) == admissionv1.Fail
}

func groups(rules []admissionv1.RuleWithOperations) []string {
	all := map[string]bool{}
	for _, r := range rules {
		for _, g := range r.APIGroups {
			all[g] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *site) observeWebhook(ctx context.Context, to *admissionv1.ServiceReference, w doctor.Webhook) {
	if to == nil { // a URL, which only the API server can reach
		return
	}
	w.Service = to.Namespace + "/" + to.Name
	service := &corev1.Service{}
	err := s.Get(ctx, client.ObjectKey{Namespace: to.Namespace, Name: to.Name}, service)
	switch {
	case apierrors.IsNotFound(err):
		w.Missing = true
	case err != nil:
		s.gap(doctor.CheckWebhooks, "Service "+w.Service, err)
		return
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return
	default:
		ready, err := s.hasEndpoint(ctx, to)
		if err != nil {
			s.gap(doctor.CheckWebhooks, "EndpointSlices of Service "+w.Service, err)
			return
		}
		if ready {
			return
		}
	}
	s.seen.Webhooks = append(s.seen.Webhooks, w)
}

func (s *site) hasEndpoint(ctx context.Context, to *admissionv1.ServiceReference) (bool, error) {
	slicesOf := &discoveryv1.EndpointSliceList{}
	if err := s.List(ctx, slicesOf, client.InNamespace(to.Namespace),
		client.MatchingLabels{discoveryv1.LabelServiceName: to.Name}); err != nil {
		return false, fmt.Errorf("list EndpointSlices: %w", err)
	}
	for _, slice := range slicesOf.Items {
		for _, e := range slice.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				return true, nil
			}
		}
	}
	return false, nil
}
