// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/bellwether-dev/bellwether/bundles"
)

// csvSpot returns the one place for faults of the bundle as a whole.
func csvSpot(d *draft) []spot { return []spot{d.csv()} }

// setting plants a fault that is the value of one field.
func setting(value any, path ...any) func(*draft, spot) spot {
	return func(d *draft, s spot) spot { return d.set(s, value, path...) }
}

// adding plants a fault that is a new element of a list.
func adding(value any, path ...any) func(*draft, spot) spot {
	return func(d *draft, s spot) spot { return d.add(s, value, path...) }
}

// object plants a fault that is a new manifest; the rule reports it at a path.
func object(text string, path ...any) func(*draft, spot) spot {
	return func(d *draft, _ spot) spot { return d.addObject(text, d.newFile()).below(path...) }
}

// only keeps the places that a condition holds for.
func only(spots func(*draft) []spot, condition func(*draft, spot) bool) func(*draft) []spot {
	return func(d *draft) []spot {
		return slices.DeleteFunc(spots(d), func(s spot) bool { return !condition(d, s) })
	}
}

// having is the condition that there is something at a path.
func having(path ...any) func(*draft, spot) bool {
	return func(d *draft, s spot) bool { return d.get(s, path...) != nil }
}

// lacking is the opposite of having.
func lacking(path ...any) func(*draft, spot) bool {
	return func(d *draft, s spot) bool { return d.get(s, path...) == nil }
}

const annotationsPath = "annotations"

// csvFaults are faults of the ClusterServiceVersion that the validators of operator-framework/api report.
func csvFaults() []injector {
	owned := []any{"spec", "customresourcedefinitions", "owned"}
	return []injector{
		{"of-csv", "the examples are not JSON", csvSpot, setting("[{", "metadata", annotationsPath, "alm-examples")},
		{"of-csv", "minKubeVersion is not a version", csvSpot, setting("one", "spec", "minKubeVersion")},
		{"of-csv", "no install mode is supported", only(csvSpot, having("spec", "installModes", 0)),
			func(d *draft, s spot) spot {
				for _, mode := range d.each(s, "spec", "installModes") {
					d.set(mode, false, "supported")
				}
				return s.below("spec", "installModes")
			}},
		{"of-crd", "the scope is unknown", (*draft).crds, setting("Everywhere", "spec", "scope")},
		{"of-crd", "no version is the storage version", (*draft).crds, func(d *draft, s spot) spot {
			for _, v := range d.each(s, "spec", "versions") {
				d.set(v, false, "storage")
			}
			return s.below("spec", "versions")
		}},
		{"of-bundle", "a CustomResourceDefinition is not listed as owned", only((*draft).crds, isOwned),
			func(d *draft, s spot) spot {
				name := d.text(s, "metadata", "name")
				left := slices.DeleteFunc(slices.Clone(d.list(d.csv(), owned...)), func(o any) bool {
					return o.(map[string]any)["name"] == name
				})
				return d.set(d.csv(), left, owned...)
			}},
		{"olmv0-unserved-version", "no version of an owned CustomResourceDefinition is served",
			only((*draft).crds, isOwned), func(d *draft, s spot) spot {
				for _, v := range d.each(s, "spec", "versions") {
					d.set(v, false, "served")
				}
				name, last := d.text(s, "metadata", "name"), 0
				for i, o := range d.list(d.csv(), owned...) {
					if o.(map[string]any)["name"] == name {
						last = i
					}
				}
				return d.csv().below(append(slices.Clone(owned), last, "version")...)
			}},
		{"of-bundle", "an owned CustomResourceDefinition is missing", csvSpot, func(d *draft, s spot) spot {
			return d.add(s, map[string]any{"name": "faults.planted.example.com", "version": "v1", "kind": "Fault"},
				owned...).above(1)
		}},
		{"of-object", "a PriorityClass is the global default", csvSpot, object("{apiVersion: scheduling.k8s.io/v1, "+
			"kind: PriorityClass, metadata: {name: planted}, value: 1, globalDefault: true}", "globalDefault")},
		{"of-removed-api", "a CustomResourceDefinition is of v1beta1", (*draft).crds,
			setting("apiextensions.k8s.io/v1beta1", "apiVersion")},
		{"of-removed-api", "a PodDisruptionBudget is of v1beta1", csvSpot, object("{apiVersion: policy/v1beta1, "+
			"kind: PodDisruptionBudget, metadata: {name: planted}, spec: {maxUnavailable: 1}}", "apiVersion")},
		{"of-good-practice", "a channel has an unusual name", func(*draft) []spot {
			return []spot{fileSpot(annotationsFile, annotationsPath, bundles.AnnotationChannels)}
		}, annotating("planted")},
		{"of-hub", "the provider has no name", csvSpot, func(d *draft, s spot) spot {
			return d.set(s, map[string]any{}, "spec", "provider")
		}},
		{"of-category", "the capability level is unknown", csvSpot,
			setting("Planted", "metadata", annotationsPath, "capabilities")},
		{"of-category", "a category is unknown", csvSpot,
			setting("Planted", "metadata", annotationsPath, "categories")},
		{"csv-duplicate-install-mode", "an install mode is listed twice",
			only(csvSpot, having("spec", "installModes", 0)),
			func(d *draft, s spot) spot {
				return d.add(s, d.get(s, "spec", "installModes", 0), "spec", "installModes")
			}},
		{"csv-api-version", "the apiVersion is one that OLM does not have",
			only(csvSpot, func(d *draft, s spot) bool {
				return d.text(s, "apiVersion") == "operators.coreos.com/v1alpha1"
			}), setting("operators.coreos.com/v1", "apiVersion")},
	}
}

func isOwned(d *draft, s spot) bool {
	return slices.ContainsFunc(d.list(d.csv(), "spec", "customresourcedefinitions", "owned"), func(o any) bool {
		return o.(map[string]any)["name"] == d.text(s, "metadata", "name")
	})
}

// annotating sets the annotation of the bundle that a place names.
func annotating(value any) func(*draft, spot) spot {
	return func(d *draft, s spot) spot {
		d.metadata(s.file, func(content map[string]any) {
			content[annotationsPath].(map[string]any)[s.path[1].(string)] = value
		})
		return s
	}
}

// annotation is the place of an annotation that the bundle has.
func annotation(name string) func(*draft) []spot {
	return func(d *draft) []spot {
		if d.predecessor.Annotations[name] == "" {
			return nil
		}
		return []spot{fileSpot(annotationsFile, annotationsPath, name)}
	}
}

// listing adds an entry to a list in a file of metadata, and says where it has to be reported.
func listing(file, list string, entry map[string]any, below ...any) func(*draft, spot) spot {
	return func(d *draft, _ spot) spot {
		var n int
		d.metadata(file, func(content map[string]any) {
			old, _ := content[list].([]any)
			content[list], n = append(old, entry), len(old)
		})
		return fileSpot(file, list, n).below(below...)
	}
}

func entry(kind string, value any) map[string]any {
	return map[string]any{"type": kind, "value": value}
}

// stray plants a file that is no manifest, or one in a folder.
func stray(name string) func(*draft, spot) spot {
	return func(d *draft, _ spot) spot {
		file := strings.Replace(d.newFile(), "planted.yaml", name, 1)
		d.files[file] = []byte("planted\n")
		if folder, _, below := strings.Cut(name, "/"); below {
			file = strings.Replace(d.newFile(), "planted.yaml", folder, 1)
		}
		return fileSpot(file)
	}
}

const (
	configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: planted}}"
	service   = "{apiVersion: v1, kind: Service, metadata: {name: planted}, spec: {ports: [{port: 80}]}}"
	binding   = "{apiVersion: rbac.authorization.k8s.io/v1, metadata: {name: planted}, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, "
)

// formatFaults are faults of the files of a bundle, and of the kinds of its manifests.
func formatFaults() []injector {
	profile := bundles.PropertySLO
	return []injector{
		{"bundle-annotations", "the channels are not named", annotation(bundles.AnnotationChannels), annotating("")},
		{"bundle-annotations", "no version is in the default channel", annotation(bundles.AnnotationChannels),
			func(d *draft, s spot) spot {
				return annotating("planted")(d, fileSpot(s.file, annotationsPath, bundles.AnnotationDefaultChannel))
			}},
		{"bundle-stray-file", "there is a README among the manifests", csvSpot, stray("README.md")},
		{"bundle-stray-file", "there is a folder among the manifests", csvSpot, stray("planted/more.yaml")},
		{"dependency-invalid", "a dependency has an unknown type", csvSpot,
			listing(dependenciesFile, "dependencies", entry("olm.planted", map[string]any{"a": "b"}))},
		{"dependency-invalid", "the version of a dependency is not a range", csvSpot, listing(dependenciesFile,
			"dependencies", entry("olm.package", map[string]any{"packageName": "planted", "version": "new"}))},
		{"object-unknown-field", "a Deployment's template has a misspelt field", deploymentSpots,
			setting(map[string]any{}, "spec", "tmplate")},
		{"object-metadata", "the name of a manifest is invalid", csvSpot,
			object("{apiVersion: v1, kind: ConfigMap, metadata: {name: Planted_Fault}}", "metadata", "name")},
		{"object-metadata", "a label has an invalid value", csvSpot,
			func(d *draft, s spot) spot { return d.set(s, "not a label!", "metadata", "labels", "planted").above(1) }},
		{"object-duplicate", "a manifest is there twice", csvSpot, func(d *draft, _ spot) spot {
			d.addObject(configMap, strings.Replace(d.newFile(), "planted", "a-planted", 1))
			return d.addObject(configMap, strings.Replace(d.newFile(), "planted", "b-planted", 1)).below("metadata",
				"name")
		}},
		{"object-namespace", "a manifest names a namespace", csvSpot, object("{apiVersion: v1, kind: ConfigMap, "+
			"metadata: {name: planted, namespace: planted}}", "metadata", "namespace")},
		{"binding-namespace", "a ClusterRoleBinding does not name the namespace", accountSpots, bindingTo("")},
		{"binding-namespace", "a ClusterRoleBinding names a namespace", accountSpots, bindingTo("planted")},
		{"pdb-blocks-drain", "a budget allows no disruption", csvSpot, object("{apiVersion: policy/v1, "+
			"kind: PodDisruptionBudget, metadata: {name: planted}, spec: {maxUnavailable: 0}}", "spec",
			"maxUnavailable")},
		{"pdb-blocks-drain", "a budget wants all Pods of a Deployment", only(deploymentSpots, having("spec", "template",
			"metadata", "labels")), budgetForAll},
		{"olmv0-kind", "there is a Deployment among the manifests", csvSpot, object("{apiVersion: apps/v1, "+
			"kind: Deployment, metadata: {name: planted}}", "kind")},
		{"olmv1-kind", "there is a Deployment among the manifests", csvSpot, object("{apiVersion: apps/v1, "+
			"kind: Deployment, metadata: {name: planted}}", "kind")},
		{"olmv0-second-document", "a file has two manifests", (*draft).crds, func(d *draft, s spot) spot {
			return d.addObject(configMap, s.file)
		}},
		{"slo-profile", "the property has an unknown field", csvSpot, listing(propertiesFile, "properties",
			entry(profile, map[string]any{"planted": true}), "value")},
		{"slo-profile", "a Service is probed on a port that it does not have", csvSpot, func(d *draft, s spot) spot {
			d.addObject(service, d.newFile())
			return listing(propertiesFile, "properties", entry(profile, map[string]any{
				"services": []any{map[string]any{"name": "planted", "port": 81}}}), "value")(d, s)
		}},
		{"support-invalid", "the end of support is not a day", csvSpot, listing(propertiesFile, "properties",
			entry(bundles.PropertySupport, map[string]any{"endOfSupport": "soon"}), "value")},
		{"olmv1-dependency", "the bundle depends on a package", csvSpot, listing(dependenciesFile, "dependencies",
			entry("olm.package", map[string]any{"packageName": "planted", "version": ">=1.0.0"}))},
		{"olmv1-api-service", "the bundle owns an API service", csvSpot, adding(map[string]any{"name": "planted",
			"group": "planted.example.com", "version": "v1", "kind": "Fault", "deploymentName": "planted"},
			"spec", "apiservicedefinitions", "owned")},
		{"olmv1-install-mode", "only MultiNamespace is supported", only(csvSpot, having("spec", "installModes", 0)),
			setting([]any{map[string]any{"type": "MultiNamespace", "supported": true}}, "spec", "installModes")},
	}
}

// bindingTo plants a ClusterRoleBinding for a ServiceAccount of the operator.
func bindingTo(namespace string) func(*draft, spot) spot {
	return func(d *draft, s spot) spot {
		subject := "{kind: ServiceAccount, name: " + d.text(s) + "}"
		if namespace != "" {
			subject = "{kind: ServiceAccount, name: " + d.text(s) + ", namespace: " + namespace + "}"
		}
		return d.addObject(binding+"kind: ClusterRoleBinding, subjects: ["+subject+"]}", d.newFile()).below("subjects",
			0)
	}
}

// accountSpots are the places that name a ServiceAccount of the operator.
func accountSpots(d *draft) []spot {
	var out []spot
	for _, s := range deploymentSpots(d) {
		if name := s.below("spec", "template", "spec", "serviceAccountName"); d.text(name) != "" {
			out = append(out, name)
		}
	}
	return out
}

func budgetForAll(d *draft, s spot) spot {
	d.set(s, int64(2), "spec", "replicas")
	budget := d.addObject("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: planted}, "+
		"spec: {minAvailable: 2}}", d.newFile())
	d.set(budget, d.get(s, "spec", "template", "metadata", "labels"), "spec", "selector", "matchLabels")
	return budget.below("spec", "minAvailable")
}

// upgradeFaults are about the version, and the upgrade to it.
func upgradeFaults() []injector {
	skipRange := []any{"metadata", annotationsPath, "olm.skipRange"}
	return []injector{
		{"version-format", "the version has build metadata", csvSpot, func(d *draft, s spot) spot {
			return d.set(s, d.version.String()+"+planted", "spec", "version")
		}},
		{"version-format", "the version is a pre-release", csvSpot, func(d *draft, s spot) spot {
			return d.set(s, d.version.String()+"-rc.1", "spec", "version")
		}},
		{"version-name", "the name has another version", csvSpot, setting("planted.v99.0.0", "metadata", "name")},
		{"version-taken", "the name was published before", csvSpot, func(d *draft, s spot) spot {
			return d.set(s, d.predecessor.Name, "metadata", "name")
		}},
		{"version-taken", "the version was published before", csvSpot, func(d *draft, s spot) spot {
			return d.set(s, d.predecessor.Version.String(), "spec", "version")
		}},
		{"package-changed", "the package has another name", annotation(bundles.AnnotationPackage),
			annotating("planted")},
		{"replaces-invalid", "the version replaces itself", csvSpot, func(d *draft, s spot) spot {
			return d.set(s, d.text(s, "metadata", "name"), "spec", "replaces")
		}},
		{"replaces-invalid", "the version replaces one that was never published", csvSpot,
			setting("planted.v0.0.1", "spec", "replaces")},
		{"replaces-invalid", "the version replaces a newer one", csvSpot,
			setting("planted.v99.0.0", "spec", "replaces")},
		{"replaces-strands", "the version replaces the one before the last, and does not skip the last",
			only(csvSpot, hasTwoInChannel), func(d *draft, s spot) spot {
				d.set(s, nil, "spec", "skips")
				d.set(s, nil, skipRange...)
				return d.set(s, d.history[len(d.history)-2].Name, "spec", "replaces")
			}},
		{"skip-range-invalid", "the range is not one", csvSpot, setting("all before", skipRange...)},
		{"skip-range-invalid", "the range includes the version itself", csvSpot, setting(">=0.0.1", skipRange...)},
		{"min-kube-raised", "minKubeVersion is higher than before", csvSpot,
			setting("1.99.0", "spec", "minKubeVersion")},
		{"crd-removed", "an owned CustomResourceDefinition is gone", (*draft).crds, func(d *draft, s spot) spot {
			d.documents = slices.Delete(d.documents, s.index, s.index+1)
			return d.csv().below("spec", "customresourcedefinitions", "owned")
		}},
	}
}

// hasTwoInChannel says whether there are two published versions, the newer one in a channel of the draft.
func hasTwoInChannel(d *draft, _ spot) bool {
	return len(d.history) > 1 && hasCommonChannel(d.predecessor, d.history[len(d.history)-1])
}

// permissionSpots are the permissions that are granted in all namespaces.
func permissionSpots(d *draft) []spot {
	out := d.each(d.csv(), "spec", "install", "spec", "clusterPermissions")
	if d.predecessor.SupportsAllNamespaces() {
		out = append(out, d.each(d.csv(), "spec", "install", "spec", "permissions")...)
	}
	return out
}

// right plants a rule of RBAC.
func right(group, resource string, verbs ...string) func(*draft, spot) spot {
	var list []any
	for _, verb := range verbs {
		list = append(list, verb)
	}
	return adding(map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": list}, "rules")
}

func rbacFaults() []injector {
	const planted = "planted.example.com"
	isNew := func(d *draft, _ spot) bool {
		return !slices.ContainsFunc(listGrants(d.predecessor), func(g grant) bool {
			return hasPermission(g, permission{group: planted, resource: "faults", verb: "get"})
		})
	}
	return []injector{
		{"rbac-wildcard", "all verbs of a resource", permissionSpots, right(planted, "faults", "*")},
		{"rbac-wildcard", "all resources of a group", permissionSpots, right(planted, "*", "get")},
		{"rbac-wildcard", "a resource of all groups", permissionSpots, right("*", "faults", "get")},
		{"rbac-escalation", "the right to escalate ClusterRoles", permissionSpots,
			right(rbacv1.GroupName, "clusterroles", "escalate")},
		{"rbac-escalation", "the right to bind Roles", permissionSpots, right(rbacv1.GroupName, "roles", "bind")},
		{"rbac-escalation", "the right to impersonate users", permissionSpots, right("", "users", "impersonate")},
		{"rbac-escalation", "the right to create tokens", permissionSpots,
			right("", "serviceaccounts/token", "create")},
		{"rbac-cluster-secrets", "the right to list Secrets", permissionSpots, right("", "secrets", "list")},
		{"rbac-cluster-secrets", "all rights to all core resources", permissionSpots, right("", "*", "*")},
		{"rbac-cluster-pods", "the right to create Pods", permissionSpots, right("", "pods", "create")},
		{"rbac-cluster-pods", "the right to run commands in Pods", permissionSpots, right("", "pods/exec", "create")},
		{"rbac-removed-api", "a right to PodSecurityPolicies", permissionSpots,
			right("policy", "podsecuritypolicies", "use")},
		{"rbac-growth", "a right to another resource", only(permissionSpots, isNew), right(planted, "faults", "get")},
		{"olmv1-operator-condition", "a right to OperatorConditions", permissionSpots,
			right("operators.coreos.com", "operatorconditions", "get")},
	}
}
