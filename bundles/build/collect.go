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

// sortedObjects are the manifests, grouped by their use in the bundle.
type sortedObjects struct {
	deployments         []typedObject[appsv1.Deployment]
	accounts            []object
	roles               []typedObject[rbacv1.Role]
	clusterRoles        []typedObject[rbacv1.ClusterRole]
	roleBindings        []typedObject[rbacv1.RoleBinding]
	clusterRoleBindings []typedObject[rbacv1.ClusterRoleBinding]
	crds                []typedObject[apiextensionsv1.CustomResourceDefinition]
	validating          []typedObject[admissionregistrationv1.ValidatingWebhookConfiguration]
	mutating            []typedObject[admissionregistrationv1.MutatingWebhookConfiguration]
	services            []typedObject[corev1.Service]
	examples            []object
	scorecard           []object
	// certificates are objects of kind Certificate or Issuer.
	certificates []object
	// manifests are added to the bundle unchanged, except for their namespace.
	manifests []object
}

// sortObjects adds every object to its group. It reads CRDs first, because an object of a kind that a CRD defines is an
// example.
func (a *assembler) sortObjects(objects []object) {
	var otherObjects []object
	kinds := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: apiextensionsv1.GroupName,
			Kind: "CustomResourceDefinition"}) {
			otherObjects = append(otherObjects, o)
			continue
		}
		if !a.checkAPIVersion(o, "v1") {
			continue
		}
		if crd, ok := decode[apiextensionsv1.CustomResourceDefinition](a, o); ok {
			a.objects.crds = append(a.objects.crds, crd)
			kinds[schema.GroupKind{Group: crd.value.Spec.Group, Kind: crd.value.Spec.Names.Kind}] = true
		}
	}
	for _, o := range otherObjects {
		if kinds[o.GroupVersionKind().GroupKind()] {
			a.objects.examples = append(a.objects.examples, o)
			continue
		}
		a.placeObject(o)
	}
}

// checkAPIVersion reports a problem and returns false if an object has another version of its API than the given
// version, which is the only version that Kubernetes serves.
func (a *assembler) checkAPIVersion(o object, version string) bool {
	if gvk := o.GroupVersionKind(); gvk.Version != version {
		gvk.Version = version
		a.addProblem("%v is of %s, which Kubernetes does not serve: write it as %s", o, o.GetAPIVersion(),
			gvk.GroupVersion())
		return false
	}
	return true
}

// placeObject adds an object that is neither a CRD nor an example to its group.
func (a *assembler) placeObject(o object) {
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
			a.addProblem("%v is a second configuration of the scorecard, besides %v: a bundle has one", o,
				a.objects.scorecard[0])
		}
		a.objects.scorecard = append(a.objects.scorecard, o)
	default:
		a.placeOther(o)
	}
}

// collect decodes an object and appends it to the list. It reports a problem if this fails.
func collect[T any](a *assembler, into *[]typedObject[T], o object, version string) {
	if !a.checkAPIVersion(o, version) {
		return
	}
	if value, ok := decode[T](a, o); ok {
		*into = append(*into, value)
	}
}

// carriedKinds are the further kinds that OLM v0 installs from a bundle. PodMonitor is not included: operator-registry
// lists it, but OLM v0's catalog operator does not support it.
var carriedKinds = map[string]bool{
	"ConfigMap": true, kindSecret: true,
	"PrometheusRule.monitoring.coreos.com": true, "ServiceMonitor.monitoring.coreos.com": true,
	"PodDisruptionBudget.policy": true, "PriorityClass.scheduling.k8s.io": true,
	"VerticalPodAutoscaler.autoscaling.k8s.io": true, "NetworkPolicy.networking.k8s.io": true,
	"ConsoleYAMLSample.console.openshift.io": true, "ConsoleQuickStart.console.openshift.io": true,
	"ConsoleCLIDownload.console.openshift.io": true, "ConsoleLink.console.openshift.io": true,
	"ConsolePlugin.console.openshift.io": true,
}

// placeOther adds an object of a further kind to its group, leaves it out, or reports a problem.
func (a *assembler) placeOther(o object) {
	gk := o.GroupVersionKind().GroupKind().String()
	switch {
	case carriedKinds[gk]:
		a.objects.manifests = append(a.objects.manifests, o)
	case gk == "Namespace":
		a.leaveOut(o, "the namespace is made before OLM installs into it. Its labels and annotations are not in the "+
			"bundle")
	case gk == "Certificate.cert-manager.io", gk == "Issuer.cert-manager.io":
		a.objects.certificates = append(a.objects.certificates, o)
	case a.canLose(o):
		a.leaveOut(o, asRequested)
	default:
		a.addProblem("%v: a bundle cannot carry a %s%s; do without it, or lose it knowingly with --leave-out %s", o, gk,
			findRemedy(o), o.GetKind())
	}
}

// remedies are hints, in parentheses, for kinds that users often try.
var remedies = map[string]string{
	"StatefulSet.apps":                  " (OLM runs Deployments only)",
	"DaemonSet.apps":                    " (OLM runs Deployments only; let the operator make it)",
	"Job.batch":                         " (let the operator make it)",
	"CronJob.batch":                     " (let the operator make it)",
	"Pod":                               " (OLM runs Deployments only)",
	"APIService.apiregistration.k8s.io": " (write it as spec.apiservicedefinitions of a ClusterServiceVersion, --csv)",
	"PodMonitor.monitoring.coreos.com":  " (a ServiceMonitor can do)",
}

// findRemedy returns a hint about an object that a bundle cannot contain, in parentheses; empty if there is none.
func findRemedy(o object) string {
	gk := o.GroupVersionKind().GroupKind()
	if text, known := remedies[gk.String()]; known {
		return text
	}
	if strings.Contains(gk.Group, ".") && !strings.HasSuffix(gk.Group, ".k8s.io") {
		return " (if this operator defines it: with its CustomResourceDefinition among the manifests it would be an " +
			"example)"
	}
	return ""
}

// asRequested is the reason for objects that --leave-out names.
const asRequested = "--leave-out names it"

// canLose reports whether --leave-out names an object.
func (a *assembler) canLose(o object) bool { return a.canLoseNamed(o.GetKind(), o.GetName()) }

// canLoseNamed reports whether --leave-out names a kind, or the object of this kind and name.
func (a *assembler) canLoseNamed(kind, name string) bool {
	return slices.ContainsFunc(a.options.LeaveOut, func(entry string) bool {
		return strings.EqualFold(entry, kind) || strings.EqualFold(entry, kind+"/"+name)
	})
}

// setNamespace sets the namespace of the operator from the Deployments, or else from other objects. It removes and
// reports objects of other namespaces: in a bundle no object has a namespace, and OLM installs all namespaced objects
// into the same namespace.
func (a *assembler) setNamespace() {
	for _, d := range a.objects.deployments {
		switch ns := d.GetNamespace(); {
		case a.namespace == "":
			a.namespace = ns
		case ns != "" && ns != a.namespace:
			a.addProblem("%v is in namespace %s, and other Deployments are in %s: OLM installs an operator into one", d,
				ns, a.namespace)
		}
	}
	if a.namespace == "" {
		a.namespace, a.impliedNamespace = a.findImpliedNamespace(), true
	}
	dropElsewhere(a, &a.objects.roles)
	dropElsewhere(a, &a.objects.roleBindings)
	dropElsewhere(a, &a.objects.services)
	a.objects.manifests = slices.DeleteFunc(a.objects.manifests, a.reportElsewhere)
	a.objects.accounts = slices.DeleteFunc(a.objects.accounts, a.reportElsewhere)
}

// findImpliedNamespace returns the namespace of Deployments that name none. This is the namespace in which a binding
// expects an account of the operator, or else the first namespace of an object that is not a system namespace. It is
// empty if no object has a namespace.
func (a *assembler) findImpliedNamespace() string {
	accounts := a.listOwnAccounts()
	for _, o := range a.objects.accounts {
		// An account without a namespace is in the namespace of the operator.
		accounts[o.GetName()] = accounts[o.GetName()] || o.GetNamespace() == ""
	}
	for _, b := range a.listBindings() {
		i := slices.IndexFunc(b.subjects, func(s rbacv1.Subject) bool {
			return s.Kind == kindServiceAccount && accounts[s.Name] && s.Namespace != ""
		})
		if i >= 0 {
			return b.subjects[i].Namespace
		}
	}
	for _, o := range a.listNamespacedObjects() {
		if ns := o.GetNamespace(); ns != "" && !strings.HasPrefix(ns, "kube-") {
			return ns
		}
	}
	return ""
}

// listNamespacedObjects returns the objects for the operator's namespace, without Deployments.
func (a *assembler) listNamespacedObjects() []object {
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

// isInNamespace reports whether an object with this namespace is in the operator's namespace. It returns true for an
// empty namespace.
func (a *assembler) isInNamespace(namespace string) bool {
	return namespace == "" || namespace == a.namespace
}

// dropElsewhere removes the objects of other namespaces from a list, and reports them by reportElsewhere.
func dropElsewhere[T any](a *assembler, objects *[]typedObject[T]) {
	*objects = slices.DeleteFunc(*objects, func(t typedObject[T]) bool { return a.reportElsewhere(t.object) })
}

// reportElsewhere returns true for an object of another namespace. It records that the object is left out if
// --leave-out names the object, and reports a problem otherwise.
func (a *assembler) reportElsewhere(o object) bool {
	ns := o.GetNamespace()
	switch {
	case a.isInNamespace(ns):
		return false
	case a.canLose(o):
		a.leaveOut(o, asRequested)
	default:
		a.addProblem("%v is in namespace %s, but a bundle installs into one namespace, here %s; lose it knowingly "+
			"with --leave-out %s",
			o, ns, cmp.Or(a.namespace, "that of the Deployments, which name none"),
			fmt.Sprintf("%s/%s", o.GetKind(), o.GetName()))
	}
	return true
}
