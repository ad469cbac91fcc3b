// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package registryv1

import "encoding/json"

// Types of the properties that Bellwether reads.
const (
	PropertyPackage         = "olm.package"
	PropertyPackageRequired = "olm.package.required"
	PropertyGVK             = "olm.gvk"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyConstraint      = "olm.constraint"
	PropertyBundleObject    = "olm.bundle.object"
	PropertyCSVMetadata     = "olm.csv.metadata"
	// PropertyRollback lists, for each bundle that this one can directly replace, how to go back to it. Its value is a
	// list of Rollback.
	PropertyRollback = "bellwether.dev/rollback"
	// PropertySLO says how the operator is monitored: the Services to probe, where its metrics are, and objectives that
	// differ from the default. Authors write it to metadata/properties.yaml; its value is that of Profile in package
	// alerts/slo/spec.
	PropertySLO = "bellwether.dev/slo"
	// PropertySupport says for how long the version is supported, and on which versions of Kubernetes. Authors write it
	// to metadata/properties.yaml; its value is a Support.
	PropertySupport = "bellwether.dev/support"
)

// Property is a typed fact about a bundle, or one of its dependencies; Value is JSON.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}
