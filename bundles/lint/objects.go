// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bellwether-dev/bellwether/bundles"
)

// listObjectRules returns the rules about single manifests.
func listObjectRules() []Rule {
	return []Rule{{
		ID: "object-unknown-field", Title: "A manifest has a field that its kind does not have", Severity: Warning,
		Check: checkUnknownFields,
		Why: "The API server drops unknown fields without an error: with a misspelt `resources` the " +
			"operator has no requests, which is easily overlooked in review.",
		Fix: "Correct the spelling or the indentation of the field, or delete it. `kubectl explain` lists the fields " +
			"of a kind.",
	}, {
		ID: "object-metadata", Title: "The API server would refuse a manifest's metadata", Severity: Error,
		Check: checkMetadata,
		Why: "Names, labels and annotations have a syntax. A manifest that breaks it makes the InstallPlan fail on " +
			"every cluster.",
		Fix: "Correct the field that the message names.",
	}, {
		ID: "object-duplicate", Title: "Two manifests are the same object", Severity: Error, Check: checkDuplicates,
		Why: "OLM applies both, one after the other, and the last one wins; which that is depends on the names of " +
			"the files.",
		Fix: "Delete one of them, or merge them.",
	}, {
		ID: "object-namespace", Title: "A manifest names a namespace", Severity: Warning, Check: checkNamespaces,
		Why: "OLM installs everything in the namespace of the operator, regardless of the manifest, and opm " +
			"refuses such a manifest. Readers of the manifest expect the object elsewhere.",
		Fix: "Delete `metadata.namespace`.",
	}, {
		ID: "binding-namespace", Title: "A binding depends on the namespace that the operator is installed in",
		Severity: Error,
		Check:    checkBindings,
		Why: "Users choose the operator's namespace, and OLM does not touch the subjects of bindings. In any " +
			"namespace other than the one in the manifest, the operator lacks these permissions.",
		Fix: "Grant the rights by `permissions` and `clusterPermissions` of the ClusterServiceVersion; OLM makes the " +
			"bindings for them. In a RoleBinding, a subject without a namespace is in the namespace of the binding.",
	}, {
		ID: "argument-namespace", Title: "An argument depends on the namespace that the operator is installed in",
		Severity: Warning, Check: checkEachContainer(checkServiceNames),
		Why: "Users choose the operator's namespace. An argument or a variable with `name.namespace.svc` of a " +
			"Service of the operator names one that is not there in any other namespace, and a certificate for that " +
			"name is not valid.",
		Fix: "Take the namespace from the Pod: a variable by `fieldRef` to `metadata.namespace`, and " +
			"`name.$(VARIABLE).svc` in the argument.",
	}}
}

// newObject returns a pointer to an empty T.
func newObject[T any]() any { return new(T) }

var olmGroup, extensionsGroup = operatorsv1alpha1.SchemeGroupVersion, apiextensionsv1.SchemeGroupVersion

// typedKinds are constructors for the kinds whose fields this package checks.
var typedKinds = map[schema.GroupVersionKind]func() any{
	olmGroup.WithKind("ClusterServiceVersion"):                  newObject[operatorsv1alpha1.ClusterServiceVersion],
	extensionsGroup.WithKind("CustomResourceDefinition"):        newObject[apiextensionsv1.CustomResourceDefinition],
	corev1.SchemeGroupVersion.WithKind("ConfigMap"):             newObject[corev1.ConfigMap],
	corev1.SchemeGroupVersion.WithKind("Secret"):                newObject[corev1.Secret],
	corev1.SchemeGroupVersion.WithKind("Service"):               newObject[corev1.Service],
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"):        newObject[corev1.ServiceAccount],
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"):   newObject[networkingv1.NetworkPolicy],
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"): newObject[policyv1.PodDisruptionBudget],
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):           newObject[rbacv1.ClusterRole],
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"):    newObject[rbacv1.ClusterRoleBinding],
	rbacv1.SchemeGroupVersion.WithKind("Role"):                  newObject[rbacv1.Role],
	rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):           newObject[rbacv1.RoleBinding],
	schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"):   newObject[schedulingv1.PriorityClass],
}

// checkUnknownFields reports fields that a manifest has and its kind does not, and manifests that cannot be decoded as
// their kind. It skips kinds that are not in typedKinds.
func checkUnknownFields(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		empty, ok := typedKinds[o.GroupVersionKind()]
		if !ok {
			continue
		}
		err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, empty(), true)
		strict, ok := runtime.AsStrictDecodingError(err)
		switch {
		case ok:
			for _, e := range strict.Errors() {
				out = append(out, newUnknownFieldFinding(o, e.Error()))
			}
		case err != nil:
			out = append(out, newObjectFinding(o, fmt.Sprintf("no %s can be decoded from it: %s", o.GetKind(),
				clip(err.Error()))))
		}
	}
	return out
}

// newUnknownFieldFinding returns a finding for a decoding error. It parses the path from the error text, because the
// error has no field for the path. The message is the error text if the error is not about an unknown field.
func newUnknownFieldFinding(o *bundles.Object, text string) Finding {
	name, hasPrefix := strings.CutPrefix(text, `unknown field "`)
	name, hasSuffix := strings.CutSuffix(name, `"`)
	if !hasPrefix || !hasSuffix {
		return newObjectFinding(o, clip(text))
	}
	return newObjectFinding(o, fmt.Sprintf("%s has no field %s", o.GetKind(), name), parsePath(name)...)
}

// checkMetadata reports metadata that the API server would refuse.
func checkMetadata(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		name := validation.NameIsDNSSubdomain
		if o.GroupVersionKind().Group == rbacv1.GroupName { // names may have colons
			name = func(text string, _ bool) []string { return content.IsPathSegmentName(text) }
		}
		for _, err := range validation.ValidateObjectMetaAccessor(o, o.GetNamespace() != "", name,
			field.NewPath("metadata")) {
			out = append(out, newObjectFinding(o, clip(err.ErrorBody()), parsePath(err.Field)...))
		}
	}
	return out
}

// checkDuplicates reports manifests with the same group, kind and name as an earlier manifest.
func checkDuplicates(in *Input) []Finding {
	type key struct {
		schema.GroupKind
		name string
	}
	firstObjects := map[key]*bundles.Object{}
	var out []Finding
	for _, o := range in.Bundle.Objects {
		k := key{o.GroupVersionKind().GroupKind(), o.GetName()}
		if earlier := firstObjects[k]; earlier != nil {
			out = append(out, newObjectFinding(o, fmt.Sprintf("%s %s is in %s too", o.GetKind(), o.GetName(),
				earlier.File), "metadata", "name"))
			continue
		}
		firstObjects[k] = o
	}
	return out
}

// checkNamespaces reports manifests that name a namespace.
func checkNamespaces(in *Input) []Finding {
	var out []Finding
	for _, o := range in.Bundle.Objects {
		// Generators write a placeholder namespace into the ClusterServiceVersion, which is common and harmless.
		if name := o.GetNamespace(); name != "" && o != in.Bundle.CSVObject() {
			out = append(out, newObjectFinding(o, fmt.Sprintf("%s %s names namespace %s", o.GetKind(), o.GetName(),
				name), "metadata", "namespace"))
		}
	}
	return out
}

// checkServiceNames reports arguments and variables that contain the name and namespace of a Service of the operator:
// Services of the bundle and Services that OLM creates. Other Services can be in a fixed namespace.
func checkServiceNames(c container) (string, []any) {
	for _, list := range []struct {
		field  string
		values []string
	}{{"command", c.Command}, {"args", c.Args}} {
		for i, value := range list.values {
			if name := c.findService(value); name != "" {
				return fmt.Sprintf("has the argument %q, with the namespace of Service %s", value, name),
					[]any{list.field, i}
			}
		}
	}
	for i, e := range c.Env {
		if name := c.findService(e.Value); name != "" {
			return fmt.Sprintf("has %s=%s, with the namespace of Service %s", e.Name, e.Value, name), []any{"env", i}
		}
	}
	return "", nil
}

// findService returns the name of the first Service of the operator that a text names together with a namespace; empty
// if there is none.
func (c container) findService(text string) string {
	for _, n := range bundles.ServiceNames(text) {
		if slices.ContainsFunc(c.bundle.Objects,
			func(o *bundles.Object) bool { return o.GetKind() == "Service" && o.GetName() == n.Name }) ||
			slices.ContainsFunc(c.bundle.CSV.Spec.WebhookDefinitions,
				func(w operatorsv1alpha1.WebhookDescription) bool { return bundles.WebhookService(w) == n.Name }) {
			return n.Name
		}
	}
	return ""
}

// checkBindings warns about bindings whose subject is a service account of the operator in a fixed namespace, and
// reports ClusterRoleBindings whose subject has no namespace.
func checkBindings(in *Input) []Finding {
	accounts := in.Bundle.Accounts()
	var out []Finding
	for _, o := range in.Bundle.Objects {
		isCluster := o.GetKind() == "ClusterRoleBinding"
		isBinding := isCluster || o.GetKind() == "RoleBinding"
		if o.GroupVersionKind().Group != rbacv1.GroupName || !isBinding {
			continue
		}
		binding := &rbacv1.ClusterRoleBinding{} // a RoleBinding has the same fields
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
			continue // rule object-unknown-field reports this
		}
		for i, s := range binding.Subjects {
			switch {
			case s.Kind != rbacv1.ServiceAccountKind || !slices.Contains(accounts, s.Name):
				// The subject is not an account of the operator.
			case s.Namespace != "":
				f := newObjectFinding(o, fmt.Sprintf("%s %s names ServiceAccount %s in namespace %s", o.GetKind(),
					o.GetName(), s.Name, s.Namespace), "subjects", i, "namespace")
				f.Severity = Warning
				out = append(out, f)
			case isCluster:
				out = append(out, newObjectFinding(o,
					fmt.Sprintf("ClusterRoleBinding %s does not say in which namespace ServiceAccount %s is; the API "+
						"server refuses that",
						o.GetName(), s.Name), "subjects", i))
			}
		}
	}
	return out
}
