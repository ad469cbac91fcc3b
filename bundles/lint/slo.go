// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/registryv1"
)

const propertiesFile = bundles.MetadataDir + "/properties.yaml"

// watchRules are about how Bellwether watches the operator.
func watchRules() []Rule {
	return []Rule{{
		ID: "slo-profile", Title: "What the bundle says of its own SLOs cannot be used", Severity: Error,
		Check: checkSLO,
		Why: "The hub takes the objectives and the Services to probe of a new operator from the property `" +
			registryv1.PropertySLO + "`. One " +
			"that it cannot read is left out, and the operator is watched by the default profile alone; a probe of a " +
			"Service that does not exist pages from the first minute.",
		Fix: "Correct the value as the message says; the fields are those of an OperatorSLO's spec. Probe Services " +
			"of the bundle, or those that the operator makes itself whenever it runs.",
	}}
}

func checkSLO(in *Input) []Finding {
	return checkProperty(in, registryv1.PropertySLO, spec.Profile, checkProbed)
}

// checkProbed compares what is probed with the Services of the bundle.
func checkProbed(in *Input, profile v1alpha1.OperatorSLOSpec, finding newFinding) []Finding {
	var out []Finding
	ports := servicePorts(in.Bundle)
	for _, s := range profile.Services {
		switch offered, known := ports[s.Name]; {
		case !known:
			f := finding("Service %s is probed and not in the bundle", s.Name)
			f.Severity = Warning
			out = append(out, f)
		case !offered[s.Port]:
			out = append(out, finding("Service %s is probed on port %d, which it does not have", s.Name, s.Port))
		}
	}
	return out
}

// newFinding makes a finding about the value of a property.
type newFinding func(format string, args ...any) Finding

// checkProperty checks the value of a property that a bundle may have once, and reports further ones.
func checkProperty[T any, V ~[]byte](in *Input, name string, parse func(V) (T, error),
	check func(*Input, T, newFinding) []Finding) []Finding {
	var out []Finding
	found := 0
	for i, p := range in.Bundle.Properties {
		if p.Type != name {
			continue
		}
		finding := func(format string, args ...any) Finding {
			return inFile(in, propertiesFile, p.Type, fmt.Sprintf(format, args...), "properties", i, "value")
		}
		if found++; found > 1 {
			out = append(out, finding("there are several properties %s; only the first one counts", p.Type))
			continue
		}
		value, err := parse(V(p.Value))
		if err != nil {
			out = append(out, finding("%s", clip(err.Error())))
			continue
		}
		out = append(out, check(in, value, finding)...)
	}
	return out
}

// servicePorts are the ports of the bundle's Services.
func servicePorts(b *bundles.Bundle) map[string]map[int32]bool {
	out := map[string]map[int32]bool{}
	for _, o := range b.Objects {
		if o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Service") {
			continue
		}
		var service corev1.Service
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &service) != nil {
			continue // object-unknown-field says so
		}
		out[o.GetName()] = map[int32]bool{}
		for _, p := range service.Spec.Ports {
			out[o.GetName()][p.Port] = true
		}
	}
	return out
}
