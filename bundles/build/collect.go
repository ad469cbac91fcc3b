// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	kindCSV            = "ClusterServiceVersion"
	kindServiceAccount = "ServiceAccount"
	kindRole           = "Role"
	kindClusterRole    = "ClusterRole"
	kindRoleBinding    = "RoleBinding"
	kindSecret         = "Secret"
)

// collected are the manifests by what becomes of them.
type collected struct {
	deployments         []typed[appsv1.Deployment]
	accounts            []object
	roles               []typed[rbacv1.Role]
	clusterRoles        []typed[rbacv1.ClusterRole]
	roleBindings        []typed[rbacv1.RoleBinding]
	clusterRoleBindings []typed[rbacv1.ClusterRoleBinding]
	crds                []typed[apiextensionsv1.CustomResourceDefinition]
	validating          []typed[admissionregistrationv1.ValidatingWebhookConfiguration]
	mutating            []typed[admissionregistrationv1.MutatingWebhookConfiguration]
	services            []typed[corev1.Service]
	examples            []object
	scorecard           []object
	// certificates are of kind Certificate or Issuer.
	certificates []object
	// manifests go into the bundle as they are, less their namespace.
	manifests []object
}

// sort puts every object where it belongs. CRDs come first, for they tell which of the others are examples.
func (a *assembly) sort(objects []object) {
	var others []object
	kinds := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: apiextensionsv1.GroupName,
			Kind: "CustomResourceDefinition"}) {
			others = append(others, o)
			continue
		}
		if !a.served(o, "v1") {
			continue
		}
		if crd, ok := decode[apiextensionsv1.CustomResourceDefinition](a, o); ok {
			a.objects.crds = append(a.objects.crds, crd)
			kinds[schema.GroupKind{Group: crd.value.Spec.Group, Kind: crd.value.Spec.Names.Kind}] = true
		}
	}
	for _, o := range others {
		if kinds[o.GroupVersionKind().GroupKind()] {
			a.objects.examples = append(a.objects.examples, o)
			continue
		}
		a.place(o)
	}
}

// served refuses versions of an API that current Kubernetes does not serve.
func (a *assembly) served(o object, version string) bool {
	if gvk := o.GroupVersionKind(); gvk.Version != version {
		gvk.Version = version
		a.problem("%v is of %s, which Kubernetes does not serve: write it as %s", o, o.GetAPIVersion(),
			gvk.GroupVersion())
		return false
	}
	return true
}

// place puts an object that is neither a CRD nor an example of one.
func (a *assembly) place(o object) {
	switch o.GroupVersionKind().GroupKind().String() {
	case "ClusterServiceVersion.operators.coreos.com":
		collect(a, &a.bases, o, "v1alpha1")
	case "Deployment.apps":
		collect(a, &a.objects.deployments, o, "v1")
	case "ServiceAccount":
		a.objects.accounts = append(a.objects.accounts, o)
	case "Role.rbac.authorization.k8s.io":
		collect(a, &a.objects.roles, o, "v1")
	case "ClusterRole.rbac.authorization.k8s.io":
		collect(a, &a.objects.clusterRoles, o, "v1")
	case "RoleBinding.rbac.authorization.k8s.io":
		collect(a, &a.objects.roleBindings, o, "v1")
	case "ClusterRoleBinding.rbac.authorization.k8s.io":
		collect(a, &a.objects.clusterRoleBindings, o, "v1")
	case "ValidatingWebhookConfiguration.admissionregistration.k8s.io":
		collect(a, &a.objects.validating, o, "v1")
	case "MutatingWebhookConfiguration.admissionregistration.k8s.io":
		collect(a, &a.objects.mutating, o, "v1")
	case "Service":
		collect(a, &a.objects.services, o, "v1")
	case "Configuration.scorecard.operatorframework.io":
		if len(a.objects.scorecard) > 0 {
			a.problem("%v is a second configuration of the scorecard, besides %v: a bundle has one", o,
				a.objects.scorecard[0])
		}
		a.objects.scorecard = append(a.objects.scorecard, o)
	default:
		a.placeOther(o)
	}
}

func collect[T any](a *assembly, into *[]typed[T], o object, version string) {
	if !a.served(o, version) {
		return
	}
	if value, ok := decode[T](a, o); ok {
		*into = append(*into, value)
	}
}

// carried are the further kinds that OLM v0 takes from a bundle. PodMonitor is missing on purpose: operator-registry
// lists it, but OLM v0's catalog operator does not know it.
var carried = map[string]bool{
	"ConfigMap": true, kindSecret: true,
	"PrometheusRule.monitoring.coreos.com": true, "ServiceMonitor.monitoring.coreos.com": true,
	"PodDisruptionBudget.policy": true, "PriorityClass.scheduling.k8s.io": true,
	"VerticalPodAutoscaler.autoscaling.k8s.io": true, "NetworkPolicy.networking.k8s.io": true,
	"ConsoleYAMLSample.console.openshift.io": true, "ConsoleQuickStart.console.openshift.io": true,
	"ConsoleCLIDownload.console.openshift.io": true, "ConsoleLink.console.openshift.io": true,
	"ConsolePlugin.console.openshift.io": true,
}

func (a *assembly) placeOther(o object) {
	gk := o.GroupVersionKind().GroupKind().String()
	switch {
	case carried[gk]:
		a.objects.manifests = append(a.objects.manifests, o)
	case gk == "Namespace":
		a.leaveOut(o, "the namespace is made before OLM installs into it. Its labels and annotations are not in the "+
			"bundle")
	case gk == "Certificate.cert-manager.io", gk == "Issuer.cert-manager.io":
		a.objects.certificates = append(a.objects.certificates, o)
	case a.mayLose(o):
		a.leaveOut(o, asRequested)
	default:
		a.problem("%v: a bundle cannot carry a %s%s; do without it, or lose it knowingly with --leave-out %s", o, gk,
			remedy(o), o.GetKind())
	}
}

// instead is what to do about kinds that people try.
var instead = map[string]string{
	"StatefulSet.apps":                  " (OLM runs Deployments only)",
	"DaemonSet.apps":                    " (OLM runs Deployments only; let the operator make it)",
	"Job.batch":                         " (let the operator make it)",
	"CronJob.batch":                     " (let the operator make it)",
	"Pod":                               " (OLM runs Deployments only)",
	"APIService.apiregistration.k8s.io": " (write it as spec.apiservicedefinitions of a ClusterServiceVersion, --csv)",
	"PodMonitor.monitoring.coreos.com":  " (a ServiceMonitor can do)",
}

// remedy is what to do about an object that a bundle cannot carry, in parentheses; empty where nothing is known.
func remedy(o object) string {
	gk := o.GroupVersionKind().GroupKind()
	if text, known := instead[gk.String()]; known {
		return text
	}
	if strings.Contains(gk.Group, ".") && !strings.HasSuffix(gk.Group, ".k8s.io") {
		return " (if this operator defines it: with its CustomResourceDefinition among the manifests it would be an " +
			"example)"
	}
	return ""
}

// asRequested is why an object of --leave-out is left out.
const asRequested = "--leave-out names it"

func (a *assembly) mayLose(o object) bool { return a.mayLoseNamed(o.GetKind(), o.GetName()) }

func (a *assembly) mayLoseNamed(kind, name string) bool {
	return slices.ContainsFunc(a.options.LeaveOut, func(what string) bool {
		return strings.EqualFold(what, kind) || strings.EqualFold(what, kind+"/"+name)
	})
}

// findNamespace finds where the operator runs in the manifests. In a bundle nothing has a namespace: OLM puts all that
// has one into the namespace that it installs to. So an object that must be elsewhere cannot be carried.
func (a *assembly) findNamespace() {
	for _, d := range a.objects.deployments {
		switch ns := d.GetNamespace(); {
		case a.namespace == "":
			a.namespace = ns
		case ns != "" && ns != a.namespace:
			a.problem("%v is in namespace %s, and other Deployments are in %s: OLM installs an operator into one", d,
				ns, a.namespace)
		}
	}
	if a.namespace == "" {
		a.namespace, a.impliedNamespace = a.implyNamespace(), true
	}
	elsewhere(a, &a.objects.roles)
	elsewhere(a, &a.objects.roleBindings)
	elsewhere(a, &a.objects.services)
	a.objects.manifests = slices.DeleteFunc(a.objects.manifests, a.isElsewhere)
	a.objects.accounts = slices.DeleteFunc(a.objects.accounts, a.isElsewhere)
}

// implyNamespace returns the namespace of Deployments that name none: that in which other objects expect the accounts,
// or the first one that an object has. System namespaces are the author's only if a binding expects an account there.
// It is empty if nothing tells.
func (a *assembly) implyNamespace() string {
	ours := a.ownAccounts()
	for _, o := range a.objects.accounts {
		ours[o.GetName()] = ours[o.GetName()] || o.GetNamespace() == ""
	}
	for _, b := range a.bindings() {
		i := slices.IndexFunc(b.subjects, func(s rbacv1.Subject) bool {
			return s.Kind == kindServiceAccount && ours[s.Name] && s.Namespace != ""
		})
		if i >= 0 {
			return b.subjects[i].Namespace
		}
	}
	for _, o := range a.namespacedObjects() {
		if ns := o.GetNamespace(); ns != "" && !strings.HasPrefix(ns, "kube-") {
			return ns
		}
	}
	return ""
}

// namespacedObjects are those that go into the bundle's namespace, without Deployments.
func (a *assembly) namespacedObjects() []object {
	out := slices.Concat(a.objects.accounts, a.objects.manifests)
	for _, s := range a.objects.services {
		out = append(out, s.object)
	}
	for _, r := range a.objects.roles {
		out = append(out, r.object)
	}
	for _, b := range a.objects.roleBindings {
		out = append(out, b.object)
	}
	return out
}

// isHere says whether something with this namespace is in that of the operator.
func (a *assembly) isHere(namespace string) bool { return namespace == "" || namespace == a.namespace }

func elsewhere[T any](a *assembly, objects *[]typed[T]) {
	*objects = slices.DeleteFunc(*objects, func(t typed[T]) bool { return a.isElsewhere(t.object) })
}

func (a *assembly) isElsewhere(o object) bool {
	ns := o.GetNamespace()
	switch {
	case a.isHere(ns):
		return false
	case a.mayLose(o):
		a.leaveOut(o, asRequested)
	default:
		a.problem("%v is in namespace %s, but a bundle installs into one namespace, here %s; lose it knowingly with "+
			"--leave-out %s",
			o, ns, cmp.Or(a.namespace, "that of the Deployments, which name none"),
			fmt.Sprintf("%s/%s", o.GetKind(), o.GetName()))
	}
	return true
}
