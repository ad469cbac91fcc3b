// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package bundles

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
	// PropertyRollback lists the rollback class for each bundle that this bundle can directly replace. Its value is a
	// list of Rollback.
	PropertyRollback = "bellwether.dev/rollback"
	// PropertySLO describes the monitoring of the operator: the Services to probe, the location of its metrics, and
	// objectives that differ from the default. Authors write it to metadata/properties.yaml; its value is a Profile of
	// package alerts/slo/spec.
	PropertySLO = "bellwether.dev/slo"
	// PropertySupport contains the end of support of the version and the supported versions of Kubernetes. Authors
	// write it to metadata/properties.yaml; its value is a Support.
	PropertySupport = "bellwether.dev/support"
)

// Property is a typed property or dependency of a bundle; Value is JSON.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}
