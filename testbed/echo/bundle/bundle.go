// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle renders the bundles of the sample operator (registry+v1
// directories) from typed objects. It only computes; the echo-bundles command
// writes the files.
package bundle

import (
	"encoding/json"
	"fmt"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/testbed/echo/operator/plan"
)

const (
	// Package is the name of the operator's package.
	Package = "echo-operator"
	// Channel is its only channel.
	Channel = "stable"
	// OperatorImage is the repository of the operator's image; its tag is the version.
	OperatorImage = "example.com/bellwether/echo-operator"
)

// Release is one version of the sample operator.
type Release struct {
	Version   string
	Replaces  string   // version that this one upgrades from, empty for the first
	Skips     []string // versions that this one stands in for
	Uppercase bool     // whether the CRD has spec.uppercase
	Fault     plan.Fault
	Notes     string // what a reader of the CSV is told about this version
}

// Releases returns all versions, oldest first.
func Releases() []Release {
	return []Release{
		{
			Version: "1.0.0",
			Notes:   "The first version.",
		},
		{
			Version: "1.1.0", Replaces: "1.0.0", Uppercase: true,
			Notes: "Adds the field `spec.uppercase`.",
		},
		{
			Version: "1.2.0", Replaces: "1.1.0", Uppercase: true, Fault: plan.FaultHalf,
			Notes: "A **bad** version, on purpose: its Deployment sets `ECHO_FAULT=half`, so about half of its " +
				"reconciles fail and its servers answer 500. It is the same program as the other versions.",
		},
		{
			Version: "1.3.0", Replaces: "1.1.0", Skips: []string{"1.2.0"}, Uppercase: true,
			Notes: "The fix of 1.2.0, which it skips.",
		},
	}
}

// CSVName is the name of the ClusterServiceVersion of version.
func CSVName(version string) string { return Package + ".v" + version }

// Files returns the files of the bundle of r by their path in the bundle's
// directory. The same release always gives the same bytes.
func Files(r Release) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, object := range map[string]any{
		path.Join("manifests", "echo-operator.clusterserviceversion.yaml"): csv(r),
		path.Join("manifests", "echo-operator.service.yaml"):               service(),
		path.Join("manifests", "echo.bellwether.dev_echoservers.yaml"):     crd(r),
		path.Join("metadata", "annotations.yaml"):                          annotations(),
		path.Join("metadata", "properties.yaml"):                           properties(),
	} {
		data, err := marshal(object)
		if err != nil {
			return nil, fmt.Errorf("marshal %s: %w", name, err)
		}
		files[name] = data
	}
	return files, nil
}

func annotations() any {
	return map[string]any{"annotations": map[string]string{
		"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
		"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
		"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
		"operators.operatorframework.io.bundle.package.v1":         Package,
		"operators.operatorframework.io.bundle.channels.v1":        Channel,
		"operators.operatorframework.io.bundle.channel.default.v1": Channel,
	}}
}

// marshal writes object as YAML without status, which is not an author's to set.
func marshal(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	return yaml.Marshal(fields)
}
