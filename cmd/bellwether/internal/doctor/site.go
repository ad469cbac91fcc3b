// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/explain"
	"github.com/bellwether-dev/bellwether/explain/doctor"
)

// creator creates access reviews, with which the API server answers whether a permission is granted.
type creator interface {
	Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error
}

// siteObserver observes one API server, of the hub or of a cluster of the fleet, and its component of Bellwether.
type siteObserver struct {
	client.Reader
	creator   creator
	config    *rest.Config
	configErr error
	observer  *observer
	// check is the check of the gaps about the component's Deployments.
	check doctor.Check
	site  doctor.Site
}

// addGap records that a subject on this site could not be read.
func (s *siteObserver) addGap(check doctor.Check, subject string, err error) {
	s.observer.addGap(check, subject+" on "+s.site.Name, err)
}

// observe sets s.site, except OLM. Each part that cannot be read becomes a gap.
func (s *siteObserver) observe(ctx context.Context) {
	s.observeClock()
	labels := client.MatchingLabels{"app.kubernetes.io/name": "bellwether",
		"app.kubernetes.io/component": s.site.Component}
	s.site.Deployments = s.readDeployments(ctx, s.check, s.site.Namespace, labels)
	s.observePermissions(ctx)
	s.observeWebhooks(ctx)
}

// observeClock measures how far the clock of the API server is ahead.
func (s *siteObserver) observeClock() {
	if s.configErr != nil {
		s.addGap(doctor.CheckClocks, "the clock of the API server", s.configErr)
		return
	}
	offset, err := measureClockOffset(s.config)
	if err != nil {
		s.addGap(doctor.CheckClocks, "the clock of the API server", err)
		return
	}
	s.site.Ahead = &offset
}

// readDeployments reads Deployments with their pods. Errors become gaps of the check.
func (s *siteObserver) readDeployments(ctx context.Context, check doctor.Check, namespace string,
	opts ...client.ListOption) []explain.Deployment {
	list := &appsv1.DeploymentList{}
	if err := s.List(ctx, list, append(opts, client.InNamespace(namespace))...); err != nil {
		s.addGap(check, "Deployments in namespace "+namespace, err)
		return nil
	}
	var out []explain.Deployment
	for i := range list.Items {
		d := &list.Items[i]
		deployment := explain.Deployment{Name: d.Name, Want: d.Spec.Replicas, Deployment: d}
		if d.Spec.Selector != nil {
			pods := &corev1.PodList{}
			if err := s.List(ctx, pods, client.InNamespace(namespace),
				client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
				s.addGap(check, "pods in namespace "+namespace, err)
			}
			deployment.Pods = pods.Items
		}
		out = append(out, deployment)
	}
	return out
}

// olmDeployments are the names of OLM's Deployments. They are also the values of the label "app" in the released
// manifests of OLM, in its chart and on OpenShift.
var olmDeployments = []string{"olm-operator", "catalog-operator"}

// FindOLMNamespaces returns the namespaces in which OLM runs on a cluster. If they cannot be read or none is found, it
// returns the namespaces in OLM's released manifests and on OpenShift.
func FindOLMNamespaces(ctx context.Context, c client.Reader) []string {
	namespaces := map[string]bool{}
	for _, name := range olmDeployments {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DeploymentList"))
		if err := c.List(ctx, list, client.MatchingLabels{"app": name}); err != nil {
			continue // a user without the right to list all Deployments can still have it in the usual namespaces
		}
		for _, d := range list.Items {
			if d.Name == name {
				namespaces[d.Namespace] = true
			}
		}
	}
	if len(namespaces) == 0 {
		return []string{"olm", "openshift-operator-lifecycle-manager"}
	}
	return slices.Sorted(maps.Keys(namespaces))
}

// observeOLM reads the Deployments of OLM.
func (s *siteObserver) observeOLM(ctx context.Context) {
	for _, namespace := range FindOLMNamespaces(ctx, s) {
		for _, d := range s.readDeployments(ctx, doctor.CheckOLM, namespace) {
			if slices.Contains(olmDeployments, d.Name) {
				s.site.OLM = append(s.site.OLM, d)
			}
		}
	}
}

var errNoDeployment = errors.New("its ServiceAccount is not known, because no Deployment of it was found")

// observePermissions checks for each permission of the built-in chart whether the component's ServiceAccount has it.
func (s *siteObserver) observePermissions(ctx context.Context) {
	if len(s.site.Deployments) == 0 {
		s.addGap(doctor.CheckPermissions, "permissions of the "+s.site.Component, errNoDeployment)
		return
	}
	access := doctor.ReadAccess(s.site.Component, s.site.Deployments[0])
	s.site.Account = access.Account()
	rules, err := charts.Rules(access.Role)
	if err != nil {
		s.addGap(doctor.CheckPermissions, "the rules of the built-in chart", err)
		return
	}
	var denied []authorizationv1.ResourceAttributes
	for _, review := range access.BuildReviews(rules.Cluster, rules.Namespaced) {
		attributes := *review.Spec.ResourceAttributes // not of the answer, which need not have them
		if err := s.creator.Create(ctx, review); err != nil {
			s.addGap(doctor.CheckPermissions, "permissions of ServiceAccount "+s.site.Account, err)
			return
		}
		if !review.Status.Allowed {
			denied = append(denied, attributes)
		}
	}
	s.site.Denied = denied
}

// observeWebhooks collects the admission webhooks whose Service has no ready endpoint.
func (s *siteObserver) observeWebhooks(ctx context.Context) {
	validating, mutating := &admissionv1.ValidatingWebhookConfigurationList{},
		&admissionv1.MutatingWebhookConfigurationList{}
	if err := s.List(ctx, validating); err != nil {
		s.addGap(doctor.CheckWebhooks, "ValidatingWebhookConfigurations", err)
	}
	if err := s.List(ctx, mutating); err != nil {
		s.addGap(doctor.CheckWebhooks, "MutatingWebhookConfigurations", err)
	}
	for _, w := range doctor.ListWebhooks(validating.Items, mutating.Items) {
		s.observeWebhook(ctx, w)
	}
}

// observeWebhook adds a webhook to s.site if its Service does not exist or has no ready endpoint.
func (s *siteObserver) observeWebhook(ctx context.Context, w doctor.Webhook) {
	namespace, name, _ := strings.Cut(w.Service, "/")
	service := &corev1.Service{}
	err := s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service)
	switch {
	case apierrors.IsNotFound(err):
		w.Missing = true
	case err != nil:
		s.addGap(doctor.CheckWebhooks, "Service "+w.Service, err)
		return
	case service.Spec.Type == corev1.ServiceTypeExternalName: // a name outside of the cluster, without EndpointSlices
		return
	default:
		endpointSlices := &discoveryv1.EndpointSliceList{}
		if err := s.List(ctx, endpointSlices, client.InNamespace(namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
			s.addGap(doctor.CheckWebhooks, "EndpointSlices of Service "+w.Service,
				fmt.Errorf("list EndpointSlices: %w", err))
			return
		}
		if doctor.HasReadyEndpoint(endpointSlices.Items) {
			return
		}
	}
	s.site.Webhooks = append(s.site.Webhooks, w)
}
